import { readRunId } from "../core/identity.ts";
import { effectName, sideKey } from "../core/items.ts";
import type { AttemptServices } from "../ports/attempts.ts";
import type { Table } from "../ports/table.ts";
import type { Process } from "./process.ts";

/** A side effect as the outside world saw it. */
export interface SideEffect {
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

  const act = async (runId: string, process: Process, key: string): Promise<void> => {
    const occurrence = readRunId(runId);
    const kept = occurrence && (await table.get(sideKey(occurrence, effectName(key)), { consistent: true }));
    done.push({ runId, key, awake: !process.slept(), again: kept?.["done"] === true });
  };

  return {
    done,
    /** Somebody does it now. */
    act,
    /** As `ctx.once` does it; something may happen between the effect and its record. */
    once: async (
      runId: string,
      services: AttemptServices,
      process: Process,
      { key, between }: { readonly key: string; readonly between?: () => void },
    ): Promise<void> => {
      if ((await services.recallEffect(key)) !== undefined) return;
      await act(runId, process, key);
      between?.();
      await services.recordEffect(key, { result: done.length });
    },
  };
};

export type SideEffects = ReturnType<typeof sideEffects>;
