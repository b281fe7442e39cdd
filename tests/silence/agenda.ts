interface Entry {
  readonly atMs: number;
  readonly act: () => Promise<unknown>;
}

/** What happens when: in order of the instants, then of their making. */
export const agenda = () => {
  /** Latest first, so that the next one is popped. */
  const entries: Entry[] = [];
  return {
    at: (atMs: number, act: Entry["act"]): void => {
      let place = entries.length;
      while (place > 0 && (entries[place - 1]?.atMs ?? 0) <= atMs) place -= 1;
      entries.splice(place, 0, { atMs, act });
    },
    nextMs: (): number => entries.at(-1)?.atMs ?? Number.POSITIVE_INFINITY,
    actOnce: async (): Promise<void> => {
      await entries.pop()?.act();
    },
  };
};
