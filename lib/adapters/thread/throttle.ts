/** More often nobody looks, and a handler that reports in a tight loop must not fill the channel. */
const EVERY_MS = 250;

export interface Throttled<Value> {
  say(value: Value): void;
  /** Passes on what is held back, at once. */
  flush(): void;
}

/** Passes on the first value at once, then the latest at most four times a second. */
export const throttle = <Value>(pass: (value: Value) => void): Throttled<Value> => {
  let held: { readonly value: Value } | undefined;
  let timer: NodeJS.Timeout | undefined;
  const flush = (): void => {
    clearTimeout(timer);
    timer = undefined;
    if (held === undefined) return;
    const { value } = held;
    held = undefined;
    pass(value);
  };
  return {
    say: (value) => {
      if (timer === undefined) {
        pass(value);
        // What comes in until then is held back.
        timer = setTimeout(flush, EVERY_MS);
      } else held = { value };
    },
    flush,
  };
};
