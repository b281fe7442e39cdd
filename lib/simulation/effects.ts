import { readRunId } from "../core/identity.ts";
import { effectName, runKey, shardScope, sideKey } from "../core/items.ts";
import type { AttemptRequest, AttemptServices } from "../ports/attempts.ts";
import type { Table } from "../ports/table.ts";
import { workOf } from "./attempts.ts";
import type { Process } from "./process.ts";

/** Whose effect it is. */
type Worker = Pick<AttemptRequest, "runId" | "part">;

/** A side effect as the outside world saw it. */
export interface SideEffect {
  /** The run, or `<run>/<index>` for one of its shards. */
  readonly runId: string;
  readonly key: string;
  /** Its process never slept. */
  readonly awake: boolean;
  /** The run's record said that it was done before. */
  readonly again: boolean;
}

/** The outside world: what handlers do to it, through `once`. */
export const sideEffects = (table: Table) => {
  const done: SideEffect[] = [];

  const isRecorded = async ({ runId, part }: Worker, key: string): Promise<boolean> => {
    const occurrence = readRunId(runId);
    if (occurrence === undefined) return false;
    const run = await table.get(runKey(occurrence), { consistent: true });
    const scope = part?.kind === "shard" ? shardScope(Number(run?.["plan"]), part.index) : "";
    const kept = await table.get(sideKey(occurrence, scope + effectName(key)), { consistent: true });
    return kept?.["done"] === true;
  };

  const act = async (worker: Worker, process: Process, key: string): Promise<void> => {
    const again = await isRecorded(worker, key);
    done.push({ runId: workOf(worker), key, awake: !process.slept(), again });
  };

  return {
    done,
    /** Somebody does it now. */
    act,
    /** As `ctx.once` does it; something may happen between the effect and its record. */
    once: async (
      worker: Worker,
      services: AttemptServices,
      process: Process,
      { key, between }: { readonly key: string; readonly between?: () => void },
    ): Promise<void> => {
      if ((await services.recallEffect(key)) !== undefined) return;
      await act(worker, process, key);
      between?.();
      await services.recordEffect(key, { result: done.length });
    },
  };
};

export type SideEffects = ReturnType<typeof sideEffects>;
