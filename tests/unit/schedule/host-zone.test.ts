import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { scheduleAnswers } from "../../support/schedule-answers.ts";

const SCRIPT = fileURLToPath(new URL("../../support/schedule-answers.ts", import.meta.url));

const run = (zone: string, code: readonly string[]): string =>
  execFileSync(process.execPath, code, {
    env: { ...process.env, TZ: zone },
    encoding: "utf8",
    maxBuffer: 64e6,
  });

test.each(["Australia/Sydney", "Africa/Casablanca", "America/Sao_Paulo"])(
  "a host in %s gives the same answer to every case",
  (zone) => {
    expect(run(zone, ["-p", "Intl.DateTimeFormat().resolvedOptions().timeZone"]).trim()).toBe(zone);
    expect(run(zone, [SCRIPT])).toBe(scheduleAnswers());
  },
);
