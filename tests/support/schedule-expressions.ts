import fc from "fast-check";

/** Random cron expressions that are valid but for dates that never come. */

const number = (min: number, max: number): fc.Arbitrary<string> => fc.integer({ min, max }).map(String);

const range = (min: number, max: number): fc.Arbitrary<string> =>
  fc
    .tuple(fc.integer({ min, max }), fc.integer({ min, max }))
    .map(([a, b]) => `${Math.min(a, b)}-${Math.max(a, b)}`);

const stepped = (min: number, max: number): fc.Arbitrary<string> =>
  fc
    .tuple(fc.oneof(fc.constant("*"), range(min, max)), fc.integer({ min: 1, max: Math.max(1, max) }))
    .map(([of, by]) => `${of}/${by}`);

const item = (min: number, max: number): fc.Arbitrary<string> =>
  fc.oneof(number(min, max), range(min, max), stepped(min, max));

const list = (min: number, max: number): fc.Arbitrary<string> =>
  fc.array(item(min, max), { minLength: 1, maxLength: 3 }).map((items) => items.join(","));

/** Fixed times and wildcards in like numbers, small hours more often than others. */
const minutes = fc.oneof(fc.constantFrom("*", "0", "30", "0,30", "*/20", "1"), list(0, 59));
const hours = fc.oneof(fc.constantFrom("*", "0", "1", "2", "3", "23", "1-3", "*/2"), list(0, 23));
const months = fc.oneof({ arbitrary: fc.constant("*"), weight: 3 }, { arbitrary: list(1, 12), weight: 1 });

const monthDays = fc.oneof(
  fc.constantFrom("1", "15", "31", "28-31", "L", "LW", "L-2", "1W", "15W", "31W", "*/2"),
  list(1, 31),
);

const unixWeekDays = fc.oneof(
  fc.constantFrom("0", "7", "1-5", "SUN", "FRI-SUN", "6L", "MON#1", "0#5", "5-7"),
  range(0, 6),
);
const awsWeekDays = fc.oneof(
  fc.constantFrom("1", "7", "MON-FRI", "SUN", "6-2", "7L", "2#1", "1#5", "L"),
  range(1, 7),
);

export const unixExpressions: fc.Arbitrary<string> = fc
  .tuple(
    minutes,
    hours,
    fc.oneof({ arbitrary: fc.constant("*"), weight: 2 }, { arbitrary: monthDays, weight: 1 }),
    months,
    fc.oneof({ arbitrary: fc.constant("*"), weight: 2 }, { arbitrary: unixWeekDays, weight: 1 }),
  )
  .map((fields) => fields.join(" "));

const awsDays = fc.oneof(
  fc.constant(["*", "?"]),
  monthDays.map((days) => [days, "?"]),
  awsWeekDays.map((days) => ["?", days]),
);

export const awsExpressions: fc.Arbitrary<string> = fc
  .tuple(minutes, hours, awsDays, months)
  .map(
    ([minute, hour, [monthDay, weekDay], month]) =>
      `cron(${minute} ${hour} ${monthDay} ${month} ${weekDay} *)`,
  );
