import fc from "fast-check";
import { expect, test } from "vitest";
import { slotKeyOf } from "../../../lib/core/identity.ts";
import {
  badKeyOf,
  badMonthOf,
  definitionKey,
  expiresAtS,
  lockKey,
  OLDEST_DELIVERY_MS,
  occurrenceInOpenKey,
  openKey,
  openRanges,
  poisonKey,
  RETENTION_MS,
  runKey,
  runRange,
  sideKey,
} from "../../../lib/core/items.ts";
import { at, msOf } from "../../support/path.ts";

const DAY_MS = 86_400_000;
const occurrence = at("report", "2026-12-31T23:59:59.999Z");

test("everything lies where the key table says", () => {
  expect(runKey(occurrence)).toEqual({ pk: "J#report", sk: "R#2026-12-31T23:59:59.999Z" });
  expect(lockKey("report")).toEqual({ pk: "J#report", sk: "L" });
  expect(sideKey(occurrence, "result-2")).toEqual({
    pk: "J#report",
    sk: "I#2026-12-31T23:59:59.999Z#result-2",
  });
  expect(definitionKey("report")).toEqual({ pk: "D", sk: "report" });
  expect(poisonKey(msOf("2026-12-31T23:59:59.999Z"), "m1")).toEqual({
    pk: "P#2026-12-31",
    sk: "2026-12-31T23:59:59.999Z~m1",
  });
  expect(badMonthOf(msOf("2026-12-31T23:59:59.999Z"))).toBe("2026-12");
  expect(badKeyOf(0, occurrence)).toBe("1970-01-01T00:00:00.000Z~report~2026-12-31T23:59:59.999Z");
});

test("a subject's runs lie in one range, without its lock and what lies aside", () => {
  const { first, last } = runRange("report");
  const inRange = (sk: string) => sk >= first && sk <= last;
  expect(inRange(runKey(occurrence).sk)).toBe(true);
  expect(inRange(lockKey("report").sk)).toBe(false);
  expect(inRange(sideKey(occurrence, "input").sk)).toBe(false);
});

test("a note for a look reads back as its occurrence", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 0, max: 4_102_444_800_000 }),
      fc.constantFrom("report", "automation:7"),
      (lookAtMs, subject) => {
        const one = { subject, slotKey: slotKeyOf(lookAtMs) };
        expect(occurrenceInOpenKey(openKey(one, lookAtMs).sk)).toEqual(one);
      },
    ),
  );
});

test("a note is in the ranges of exactly the passes whose time it falls in", () => {
  const middle = msOf("2026-12-31T23:59:59.999Z");
  const near = fc.integer({ min: middle - 2 * 3_600_000, max: middle + 2 * 3_600_000 });
  fc.assert(
    fc.property(near, near, near, fc.nat(1_000_000), (fromMs, untilMs, lookAtMs, slotMs) => {
      const { pk, sk } = openKey({ subject: "report", slotKey: slotKeyOf(slotMs) }, lookAtMs);
      const found = openRanges(fromMs, untilMs).filter(
        (range) => range.pk === pk && range.first <= sk && sk <= range.last,
      );
      expect(found).toHaveLength(fromMs <= lookAtMs && lookAtMs < untilMs ? 1 : 0);
    }),
    { numRuns: 500 },
  );
});

test("the ranges of a minute are eight, of a pass over midnight sixteen", () => {
  const pagesOf = (from: string, until: string) => openRanges(msOf(from), msOf(until)).length;
  expect(pagesOf("2026-12-31T23:58:00Z", "2026-12-31T23:59:00Z")).toBe(8);
  expect(pagesOf("2026-12-31T23:59:30Z", "2027-01-01T00:00:30Z")).toBe(16);
  expect(pagesOf("2026-12-31T23:59:00Z", "2027-01-01T00:00:00Z")).toBe(8);
});

test("records outlive every message that could run them again", () => {
  const longestMessage = 14 * DAY_MS + DAY_MS;
  expect(OLDEST_DELIVERY_MS).toBeGreaterThan(longestMessage);
  expect(RETENTION_MS).toBeGreaterThan(OLDEST_DELIVERY_MS + longestMessage);
  expect(expiresAtS(999)).toBe(90 * 86_400);
});
