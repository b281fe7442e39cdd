import { dispatch } from "../app/path/dispatch.ts";
import { InvalidInput } from "../core/errors.ts";
import type { JobDefinition } from "../core/jobs/job.ts";
import { schedulerInput } from "../core/runs/scheduler-event.ts";
import { MINUTE_MS, SECOND_MS, shortIsoOf } from "../core/time.ts";
import { strikes, type Universe } from "./process.ts";
import type { Spawn } from "./processes.ts";

const LAMBDA_TRIES = 3;

/**
 * Lambda's asynchronous invocation: two more tries with the same request id, whatever became of the first. Then its
 * failure destination, whose reader tries until the event is taken, or until it sees that nobody can ever take it.
 */
const makeInvoke = ({ time, random }: Universe, spawn: Spawn) => {
  const invoke = (event: unknown, requestId: string, tried = 0): void => {
    const isLambdas = tried < LAMBDA_TRIES;
    const { process, deps } = spawn(isLambdas ? "dispatcher" : "dead-letters");
    const again = (error?: unknown): void => {
      if (!isLambdas && error instanceof InvalidInput) return;
      time.at(time.now() + random.whole(1, 2) * MINUTE_MS, () => invoke(event, requestId, tried + 1));
    };
    process.onDeath(() => again());
    dispatch(deps, event, requestId).catch(again);
  };
  return invoke;
};

/** EventBridge delivers at least once as a rule; sometimes twice, sometimes late, and by fault not at all. */
export const makeSchedule = (universe: Universe, spawn: Spawn) => {
  const { time, random } = universe;
  const happens = (kind: string): boolean => strikes(universe, kind, "schedule");
  const invoke = makeInvoke(universe, spawn);
  const strike = (job: JobDefinition, slotMs: number): void => {
    const event = { ...schedulerInput([job.subject]), scheduledTime: shortIsoOf(slotMs) };
    const deliver = (): void => invoke(event, random.token());
    if (!happens("dropped-event")) {
      const byMinutes = happens("late-event") ? random.whole(0, 10) * MINUTE_MS : 0;
      const byHours = happens("very-late-event") ? random.whole(30, 200) * MINUTE_MS : 0;
      const late = byMinutes + byHours;
      time.at(slotMs + late + random.whole(0, 59) * SECOND_MS, deliver);
    }
    if (happens("duplicate-event")) {
      time.at(slotMs + random.whole(0, 600) * SECOND_MS, deliver);
    }
  };
  // What goes wrong is drawn when the slot comes: when the story is written down nothing goes wrong yet.
  return (job: JobDefinition, slotMs: number): void => void time.at(slotMs, () => strike(job, slotMs));
};
