/** A small seeded generator (mulberry32): the same seed, the same simulation. */
export const seededRandom = (seed: number) => {
  let state = seed >>> 0;
  const fraction = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  return {
    fraction,
    /** A whole number in [min, max]. */
    whole: (min: number, max: number): number => min + Math.floor(fraction() * (max - min + 1)),
    chance: (probability: number): boolean => fraction() < probability,
    token: (): string => Math.floor(fraction() * 2 ** 48).toString(36),
  };
};

export type SeededRandom = ReturnType<typeof seededRandom>;
