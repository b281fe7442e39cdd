/** The text of an interval schedule: `every('15 minutes')` is `every(15 minutes)`. Judged when the job is read. */
export const every = (interval: string): string => `every(${interval})`;

/** The text of a single slot, a local time in the job's zone: `at('2027-01-01T00:00')`. */
export const at = (localTime: string): string => `at(${localTime})`;
