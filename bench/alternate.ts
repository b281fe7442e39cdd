/** What is measured, by the name that the table gives it. */
export interface Side<Figures> {
  readonly name: string;
  measure(): Promise<Figures>;
}

export const medianOf = (numbers: readonly number[]): number => {
  const sorted = [...numbers].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? upper) + upper) / 2;
};

/**
 * Every side once a round, in turn, so that a busy machine is as unkind to each; the first round warms the disk and
 * does not count. Answers the figures of each side, round by round.
 */
export const alternate = async <Figures>(
  sides: readonly Side<Figures>[],
  rounds: number,
): Promise<ReadonlyMap<string, readonly Figures[]>> => {
  const figures = new Map<string, Figures[]>(sides.map(({ name }) => [name, []]));
  for (let round = 0; round <= rounds; round++) {
    for (const { name, measure } of sides) {
      const measured = await measure();
      if (round > 0) figures.get(name)?.push(measured);
    }
  }
  return figures;
};

/** The median of the rounds' ratios: what disturbed a round disturbed both of its sides. */
export const ratioOf = (own: readonly number[], other: readonly number[]): number =>
  medianOf(own.map((value, round) => value / (other[round] ?? Number.NaN)));
