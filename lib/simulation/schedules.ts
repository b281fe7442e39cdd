import { dispatch } from "../app/dispatch.ts";
import type { JobDefinition } from "../core/job.ts";
import { schedulerInput } from "../core/scheduler-event.ts";
import { MINUTE_MS, SECOND_MS, shortIsoOf } from "../core/time.ts";
import type { Universe } from "./process.ts";
import type { Spawn } from "./processes.ts";

/** Lambda's asynchronous invocation: two more tries with the same request id, whatever became of the first. */
const makeInvoke = ({ time, random }: Universe, spawn: Spawn) => {
  const invoke = (event: unknown, requestId: string, triesLeft: number): void => {
    const { process, deps } = spawn("dispatcher");
    const again = (): void => {
      if (triesLeft > 1) {
        time.at(time.now() + random.whole(1, 2) * MINUTE_MS, () => invoke(event, requestId, triesLeft - 1));
      }
    };
    process.onDeath(again);
    dispatch(deps, event, requestId).catch(again);
  };
  return invoke;
};

/** EventBridge delivers at least once as a rule; sometimes twice, sometimes late, and by fault not at all. */
export const makeSchedule = (universe: Universe, spawn: Spawn) => {
  const { time, random, faults } = universe;
  const invoke = makeInvoke(universe, spawn);
  return (job: JobDefinition, slotMs: number): void => {
    const event = { ...schedulerInput([job.subject]), scheduledTime: shortIsoOf(slotMs) };
    const deliver = (): void => invoke(event, random.token(), 3);
    if (!random.chance(faults()["dropped-event"] ?? 0)) {
      const byMinutes = random.chance(faults()["late-event"] ?? 0) ? random.whole(0, 10) * MINUTE_MS : 0;
      const byHours = random.chance(faults()["very-late-event"] ?? 0) ? random.whole(30, 200) * MINUTE_MS : 0;
      const late = byMinutes + byHours;
      time.at(slotMs + late + random.whole(0, 59) * SECOND_MS, deliver);
    }
    if (random.chance(faults()["duplicate-event"] ?? 0)) {
      time.at(slotMs + random.whole(0, 600) * SECOND_MS, deliver);
    }
  };
};
