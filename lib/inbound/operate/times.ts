import { InvalidInput } from "../../core/errors.ts";
import { readFrom } from "../../core/schedule/preview.ts";

const HINT = "write it as 2026-10-08T02:00:00Z, or 2026-10-08T10:00 for the clock of the job's zone";

/**
 * The instant a person's text names: ISO 8601; without `Z` or an offset it is read on the clock of the zone. A date
 * alone is its midnight. Of a local time that comes twice, the first.
 * @throws InvalidInput (`invalid_time`) naming the field, also for a local time that a clock change leaves out.
 */
export const readTime = (text: string, zone: string, field: string): number => {
  try {
    return readFrom(text, zone);
  } catch (error) {
    if (!(error instanceof InvalidInput)) throw error;
    throw new InvalidInput("invalid_time", error.message, { field, hint: HINT }, { cause: error });
  }
};
