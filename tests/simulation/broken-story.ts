import { readRunId } from "../../lib/core/identity.ts";
import { shortIsoOf } from "../../lib/core/time.ts";
import type { Verdict } from "../../lib/simulation/invariants.ts";
import type { Step } from "../../lib/simulation/trace.ts";

/** A story of so many slots, traced where that is asked for. */
export type Play = (slots: number, trace?: (step: Step) => void) => Promise<{ readonly verdict: Verdict }>;

export const brokenIn = ({ lost, doubled, stuck }: Verdict): readonly string[] => [
  ...lost,
  ...doubled,
  ...stuck,
];

/** A seed's story is another one with fewer slots: the shortest of them that breaks a promise too is the one to read. */
const LENGTHS = [2, 4, 8, 16, 32, 64];

const RUN_ID = /[a-z][a-z0-9:-]*~\d{8}T\d{6,9}Z(?:-[a-z0-9]{6})?/g;
const SLOT_KEY = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z(?:-[a-z0-9]{6})?/g;

/** Slot keys that a text names: by the id of a run, or by themselves. */
const slotKeysIn = (text: string): readonly string[] => [
  ...(text.match(RUN_ID) ?? []).flatMap((runId) => readRunId(runId)?.slotKey ?? []),
  ...(text.match(SLOT_KEY) ?? []),
];

export interface BrokenStory {
  readonly slots: number;
  readonly broken: readonly string[];
  /** What happened to the runs that it names, in order. */
  readonly lines: readonly string[];
}

/** The shortest story found that breaks a promise, and of its steps those that are about what broke. */
export const brokenStory = async (play: Play, slots: number): Promise<BrokenStory | undefined> => {
  for (const length of [...LENGTHS.filter((shorter) => shorter < slots), slots]) {
    const steps: Step[] = [];
    const { verdict } = await play(length, (step) => steps.push(step));
    const broken = brokenIn(verdict);
    if (broken.length === 0) continue;
    const [first = ""] = broken;
    const keys = slotKeysIn(first);
    const lines = steps
      .filter(({ about }) => keys.some((key) => about.includes(key)))
      .map(({ atMs, process, what, about }) => `${shortIsoOf(atMs)} ${process}: ${what} (${about})`);
    return { slots: length, broken, lines };
  }
  return undefined;
};
