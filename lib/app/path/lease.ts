import type { Progress } from "../../core/runs/kept.ts";
import { stopReason } from "../../core/runs/marks.ts";
import { stopMarginMs } from "../../core/settings.ts";
import type { Item, Write } from "../../core/write.ts";
import type { RunningAttempt } from "../../ports/attempts.ts";
import type { WorkDeps } from "./visit.ts";

/** How the lease of an attempt went, asked when the attempt is over. */
export interface KeptLease {
  /** The handler was stopped because the lease was lost: nothing may be written any more. */
  lost(): boolean;
  /** Why, in words; for the log. */
  why(): string;
  /** Why somebody asked the run to stop; undefined = nobody did. */
  cancelled(): string | undefined;
  stop(): void;
}

/**
 * T4: renews the lease at half time while the handler runs. Without an answer the old end stands, and shortly before
 * it the handler is stopped: whoever takes over must find it gone. Refused, the lease is lost at once, or ends as it is.
 */
export const keepLease = (
  { table, clock, timers, timings }: WorkDeps,
  held: {
    /** The write that lengthens the lease, under the condition that it is still ours. */
    renew(leaseUntilMs: number, progress: Progress | undefined): Write;
    readonly running: RunningAttempt;
    readonly untilMs: number;
    /** Of a renewal that was refused: the lease is still ours, and will not be lengthened, for the run is to stop. */
    isStopped?(item: Item | undefined): boolean;
    /** Why somebody asked the run to stop before this attempt began; undefined = nobody did. */
    readonly askedToStop: string | undefined;
    /** What the handler said last of its progress: it costs no write of its own. */
    progress(): Progress | undefined;
  },
): KeptLease => {
  let untilMs = held.untilMs;
  let lost = false;
  let why = "";
  let cancelled: string | undefined;
  let over = false;
  let noAnswer = "no answer yet";
  const lose = (reason: string, detail = reason): void => {
    lost = true;
    over = true;
    why = detail;
    held.running.stop(reason);
  };
  const cancel = (reason: string): void => {
    if (cancelled === undefined) held.running.stop("cancelled");
    cancelled ??= reason;
  };
  const refused = (item: Item | undefined): void =>
    held.isStopped?.(item) ? cancel("cancelled") : lose("the lease was lost");
  const renewOnce = async (): Promise<void> => {
    if (over) return;
    const wantedMs = clock.nowMs() + timings.leaseMs;
    const answer = await table.write(held.renew(wantedMs, held.progress())).catch((error: unknown) => {
      noAnswer = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
      return undefined;
    });
    if (over) return;
    if (answer?.written === false) return refused(answer.item);
    if (answer !== undefined) {
      untilMs = wantedMs;
      guard.cancel();
      guard = armGuard();
      const wish = stopReason(answer.item);
      if (wish !== undefined) cancel(wish);
    }
    renewal = timers.after(answer === undefined ? timings.leaseMs / 10 : timings.leaseMs / 2, tick);
  };
  const tick = (): void => {
    void renewOnce();
  };
  const armGuard = () =>
    timers.after(Math.max(0, untilMs - stopMarginMs(timings) - clock.nowMs()), () =>
      lose("the lease could not be renewed", `the lease could not be renewed: ${noAnswer}`),
    );
  let guard = armGuard();
  let renewal = timers.after(timings.leaseMs / 2, tick);
  if (held.askedToStop !== undefined) cancel(held.askedToStop);
  return {
    lost: () => lost,
    why: () => why,
    cancelled: () => cancelled,
    stop: () => {
      over = true;
      guard.cancel();
      renewal.cancel();
    },
  };
};
