import { durationText } from "../../core/duration.ts";
import { InvalidInput } from "../../core/errors.ts";
import { errorFacts } from "../../core/json-safe.ts";
import type { AttemptEnd, AttemptServices, RunningAttempt } from "../../ports/attempts.ts";
import type { Began } from "../path/attempt.ts";
import type { WorkDeps } from "../path/visit.ts";
import { listOf } from "./list-shards.ts";
import { sendAll } from "./send-all.ts";

/** Listing, then sending; it can be stopped between any two calls. */
export const planning = (deps: WorkDeps, began: Began, services: AttemptServices): RunningAttempt => {
  const { job } = began.visit;
  let halted: AttemptEnd | undefined;
  let listing: RunningAttempt | undefined;
  const goOn = (): void => {
    if (halted !== undefined) throw new Error("the planning was stopped");
  };
  const halt = (kind: "stopped" | "timed-out", name: string, message: string): void => {
    halted ??= { kind, error: { name, message } };
  };
  const stop = (reason: string): void => {
    halt("stopped", "AbortError", reason);
    listing?.stop(reason);
  };
  const limit = `the shards were not all sent within the timeout of ${durationText(job.timeoutMs)}`;
  const timeout = deps.timers.after(job.timeoutMs, () => halt("timed-out", "TimeoutError", limit));
  const act = async (): Promise<AttemptEnd> => {
    const list = await listOf(deps, began, { services, goOn, began: (running) => (listing = running) });
    if ("end" in list) return list.end;
    await sendAll(deps, began, { ...list, goOn });
    return { kind: "returned" };
  };
  const ended = act()
    .catch((error: unknown): AttemptEnd => {
      const permanent = error instanceof InvalidInput;
      return { kind: "threw", error: errorFacts(error), permanent };
    })
    .then((end) => {
      timeout.cancel();
      return halted ?? end;
    });
  return { ended, stop };
};
