/** Acts on all of them, at most so many at the same time. After the first failure none is begun; it is thrown. */
export const eachAtOnce = async <One>(
  all: Iterable<One>,
  most: number,
  act: (one: One) => Promise<void>,
): Promise<void> => {
  const left = all[Symbol.iterator]();
  let failed = false;
  const takeTurns = async (): Promise<void> => {
    for (let next = left.next(); next.done !== true && !failed; next = left.next()) {
      try {
        await act(next.value);
      } catch (error) {
        failed = true;
        throw error;
      }
    }
  };
  await Promise.all(Array.from({ length: most }, takeTurns));
};
