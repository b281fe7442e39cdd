import { setTimeout as wait } from "node:timers/promises";
import type { SeriesView } from "../lib/app/series/series-view.ts";
import { Unavailable } from "../lib/core/errors.ts";
import type { SeriesAnswer } from "../lib/inbound/operate/answers.ts";
import type { Operate } from "./client.ts";
import { EXIT, type ExitCode } from "./exit-codes.ts";
import { note } from "./output.ts";
import { barText } from "./series-text.ts";

/** A small read each; a bar that moves twice a second is alive enough. */
const POLL_MS = 500;

const isOver = ({ state }: SeriesView): boolean => state === "done" || state === "stopped";

/** Nothing moves until a person decides. */
const isParked = ({ outstanding }: SeriesView): boolean =>
  outstanding.length > 0 && outstanding.every(({ state }) => state === "parked");

/** A bar that redraws itself on a terminal; elsewhere a line for each tenth, for logs. */
const makeBar = () => {
  let last = "";
  let tenth = -1;
  return {
    draw: (series: SeriesView): void => {
      const text = barText(series);
      if (process.stderr.isTTY) {
        process.stderr.write(`\r${text.padEnd(last.length)}`);
        last = text;
        return;
      }
      const now = Number(/(\d+) %/.exec(text)?.[1] ?? 0);
      if (Math.floor(now / 10) > tenth) note(text);
      tenth = Math.max(tenth, Math.floor(now / 10));
    },
    end: (): void => {
      if (process.stderr.isTTY && last !== "") process.stderr.write("\n");
    },
  };
};

export interface Followed {
  readonly series: SeriesView;
  readonly interrupted: boolean;
}

/** Shows how a series gets on until it is over or parked. Ctrl-C ends the showing, not the series. */
export const followSeries = async (operate: Operate, first: SeriesView): Promise<Followed> => {
  const path = `/v1/jobs/${encodeURIComponent(first.job)}/series/${first.kind}`;
  const interrupt = new AbortController();
  const onInterrupt = () => interrupt.abort();
  process.once("SIGINT", onInterrupt);
  const bar = makeBar();
  let series = first;
  try {
    for (;;) {
      bar.draw(series);
      if (isOver(series) || isParked(series)) return { series, interrupted: false };
      await wait(POLL_MS, undefined, { signal: interrupt.signal });
      series = (await operate.get<SeriesAnswer>(path, {}, interrupt.signal)).series;
    }
  } catch (error) {
    if (interrupt.signal.aborted) return { series, interrupted: true };
    if (error instanceof Unavailable) note("\nit goes on when the stack is back");
    throw error;
  } finally {
    process.off("SIGINT", onInterrupt);
    bar.end();
  }
};

/** As `run --wait` of its runs: 1 if one ended badly, 3 if it was stopped or waits for a person. */
export const exitCodeOfSeries = (series: SeriesView): ExitCode => {
  if (series.state !== "done") return EXIT.refused;
  const bad = ["dead", "expired", "missed", "cancelled"].some((state) => (series.ended[state] ?? 0) > 0);
  return bad ? EXIT.failed : EXIT.done;
};
