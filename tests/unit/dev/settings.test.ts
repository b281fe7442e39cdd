import { expect, test } from "vitest";
import { readSettings } from "../../../cli/dev/settings.ts";
import { InvalidInput } from "../../../lib/core/errors.ts";

test("schedules strike, unless the environment says that they do not; any other word is refused", () => {
  expect(readSettings({}, {}).strikes).toBe(true);
  expect(readSettings({}, { BELFRY_DEV_SCHEDULER: "" }).strikes).toBe(true);
  expect(readSettings({}, { BELFRY_DEV_SCHEDULER: "off" }).strikes).toBe(false);
  expect(() => readSettings({}, { BELFRY_DEV_SCHEDULER: "false" })).toThrow(
    new InvalidInput("usage", 'BELFRY_DEV_SCHEDULER is "false"; it may be "off", or not set'),
  );
});
