/** One job or run that cannot be mended must not keep the watchdog from the others. Answers what was thrown. */
export const eachInTurn = async <One>(
  all: Iterable<One>,
  act: (one: One) => Promise<void>,
): Promise<readonly unknown[]> => {
  const failures: unknown[] = [];
  for (const one of all) {
    try {
      await act(one);
    } catch (error) {
      failures.push(error);
    }
  }
  return failures;
};
