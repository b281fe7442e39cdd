import { InvalidInput } from "../../core/errors.ts";
import { instantsOf } from "../../core/schedule/slot-source.ts";
import { parseZone } from "../../core/schedule/zone.ts";
import { readInstant } from "../../core/time.ts";

const HINT = "write it as 2026-10-08T02:00:00Z, or 2026-10-08T10:00 for the clock of the job's zone";

/**
 * The instant a person's text names: ISO 8601; without `Z` or an offset it is read on the clock of the zone. A date
 * alone is its midnight. Of a local time that comes twice, the first.
 * @throws InvalidInput (`invalid_time`), also for a local time that a clock change leaves out.
 */
export const readTime = (text: string, zoneName: string, field: string): number => {
  const refuse = (message: string) => new InvalidInput("invalid_time", message, { field, hint: HINT });
  const instant = readInstant(text);
  if (instant !== undefined) return instant;
  const wallMs = readInstant(`${/^\d{4}-\d\d-\d\d$/.test(text) ? `${text}T00:00` : text}Z`);
  if (wallMs === undefined) throw refuse(`"${text}" is no time`);
  const [first] = instantsOf(parseZone(zoneName), wallMs);
  if (first === undefined) throw refuse(`${text} does not exist in ${zoneName}: its clocks skip it`);
  return first;
};
