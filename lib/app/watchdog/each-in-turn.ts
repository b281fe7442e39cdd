/** A look that threw. */
export interface Failure {
  readonly error: unknown;
  /** Somebody looks again, though the rest of the pass is not repeated. */
  readonly isKept: boolean;
}

/**
 * One job or run that cannot be mended must not keep the watchdog from the others. Answers what was thrown.
 * @param keep of one that threw, sees to it that it is looked at again; without it, or where that throws too, the pass has to
 */
export const eachInTurn = async <One>(
  all: Iterable<One>,
  act: (one: One) => Promise<void>,
  keep?: (one: One) => void | Promise<void>,
): Promise<readonly Failure[]> => {
  const failures: Failure[] = [];
  for (const one of all) {
    try {
      await act(one);
    } catch (error) {
      failures.push({ error, isKept: await isKept(one, keep) });
    }
  }
  return failures;
};

const isKept = async <One>(one: One, keep?: (one: One) => void | Promise<void>): Promise<boolean> => {
  try {
    await keep?.(one);
    return keep !== undefined;
  } catch {
    return false;
  }
};

/** Of what keeps its own place. */
export const keptElsewhere = (failures: readonly Failure[]): readonly Failure[] =>
  failures.map(({ error }) => ({ error, isKept: true }));

/** @throws the one that was thrown, or all of them together */
export const throwAny = (failures: readonly Failure[]): void => {
  const errors = failures.map(({ error }) => error);
  if (errors.length === 1) throw errors[0];
  if (errors.length > 1) throw new AggregateError(errors, `${errors.length} looks of this pass failed`);
};
