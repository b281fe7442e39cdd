import type { Timers } from "../../ports/clock.ts";

/** A new one takes a second of a processor to start, so a burst that comes again soon should find it. */
const IDLE_MS = 30_000;

/**
 * Threads that wait for an attempt. So many stay; each holds the jobs and whatever they loaded, so those beyond end when
 * nothing has needed them for half a minute.
 */
export const idleThreads = <Thread>(
  stay: number,
  { timers, end }: { readonly timers: Timers; end(thread: Thread): void },
) => {
  const idle = new Map<Thread, { cancel(): void } | undefined>();
  const remove = (thread: Thread): boolean => {
    idle.get(thread)?.cancel();
    return idle.delete(thread);
  };
  return {
    add: (thread: Thread): void => {
      const surplus = idle.size >= stay;
      const endIt = (): void => {
        if (idle.delete(thread)) end(thread);
      };
      idle.set(thread, surplus ? timers.after(IDLE_MS, endIt) : undefined);
    },
    /** The one that came last, so that the others show whether they are needed. */
    take: (): Thread | undefined => {
      const thread = [...idle.keys()].at(-1);
      if (thread !== undefined) remove(thread);
      return thread;
    },
    /** False: it does not wait. */
    remove,
    clear: (): void => {
      for (const thread of idle.keys()) remove(thread);
    },
  };
};
