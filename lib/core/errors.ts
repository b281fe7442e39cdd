/**
 * The errors a caller could not foresee; expected answers are values. Each class tells the caller what to do:
 * `InvalidInput` - mend the input; `Conflict` - the state refuses; `Unavailable` - try again later.
 */
export abstract class BelfryError extends Error {
  /** Stable, for programs: `invalid_schedule`, `unknown_job`, ... */
  readonly code: string;
  /** May the same call succeed later, unchanged? */
  abstract readonly retryable: boolean;

  constructor(code: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
    this.code = code;
  }
}

export interface InvalidInputDetails {
  /** The option, argument or part of an expression that is wrong. */
  readonly field?: string;
  /** What to write instead. */
  readonly hint?: string;
}

/** Input that can never work as given. CLI exit 2, HTTP 400, an SQS message is poison. */
export class InvalidInput extends BelfryError {
  readonly retryable = false;
  readonly field: string | undefined;
  readonly hint: string | undefined;

  constructor(code: string, message: string, details: InvalidInputDetails = {}, options?: ErrorOptions) {
    super(code, message, options);
    this.field = details.field;
    this.hint = details.hint;
  }
}

/** The thing exists, and its state refuses the call (already done, in flight). CLI exit 3, HTTP 409. */
export class Conflict extends BelfryError {
  readonly retryable = false;
}

/** A store, queue or stack did not answer, or answered with neither yes nor no. CLI exit 4, HTTP 503. */
export class Unavailable extends BelfryError {
  readonly retryable = true;
}

/** The text of whatever was thrown. */
export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
