import { InvalidInput } from "../../lib/core/errors.ts";
import { preview } from "../../lib/core/schedule/preview.ts";
import { parseSchedule } from "../../lib/core/schedule/schedule.ts";
import { type TimeCase, timeCases } from "./schedule-cases.ts";

const answerOf = ({ dialect, expression, timezone, from }: TimeCase): unknown => {
  try {
    const answer = preview({ dialect, expression, timezone, from }, 0);
    const schedule = parseSchedule(expression, { dialect, timezone });
    return [answer, schedule.describe("zh"), schedule.aws, schedule.previous(Date.parse(from))];
  } catch (error) {
    if (error instanceof InvalidInput) return [error.code, error.message, error.hint];
    throw error;
  }
};

/** Everything that the library says about every case, as text. */
export const scheduleAnswers = (): string => JSON.stringify(timeCases().map(answerOf));

// Run by itself, in a process whose own time zone is another: tests/unit/schedule/host-zone.test.ts.
if (import.meta.main) process.stdout.write(scheduleAnswers());
