const oneTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** What goes on in real time, such as a handler that waits for a network: the virtual clock stands meanwhile. */
export interface RealWork {
  /** Answers how to say that it is over; saying so again does nothing. */
  begin(): () => void;
  /** Lets everything happen that needs no virtual time, real work included. */
  settle(): Promise<void>;
}

export const makeRealWork = (): RealWork => {
  let going = 0;
  let resume: (() => void) | undefined;
  const untilDone = (): Promise<void> =>
    new Promise((resolve) => {
      resume = resolve;
    });
  return {
    begin: () => {
      let over = false;
      going += 1;
      return () => {
        if (over) return;
        over = true;
        going -= 1;
        if (going === 0) resume?.();
      };
    },
    settle: async () => {
      await oneTurn();
      while (going > 0) {
        await untilDone();
        await oneTurn();
      }
    },
  };
};
