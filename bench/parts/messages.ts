import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { alternate, medianOf, ratioOf } from "../alternate.ts";
import { type Section, table } from "../section.ts";

const PROCESS = fileURLToPath(new URL("../message-process.ts", import.meta.url));

interface Message {
  readonly cpuUs: number;
  /** To the table and the queue. */
  readonly calls: number;
}

const measure = async (side: string, batch: number): Promise<Message> => {
  const child = fork(PROCESS, [side, String(batch)], { stdio: ["ignore", "ignore", "inherit", "ipc"] });
  const [message] = await once(child, "message");
  await once(child, "exit");
  return message as Message;
};

const BUDGET = 0.5;
const BATCHES = [1, 10];

/** Processor time of the worker for each message, beside Powertools batch and idempotency doing the same work. */
export const messages = async (rounds: number): Promise<Section> => {
  const sides = BATCHES.flatMap((batch) =>
    ["belfry", "powertools"].map((side) => ({
      name: `${side} ${batch}`,
      measure: () => measure(side, batch),
    })),
  );
  const measured = await alternate(sides, rounds);
  const of = (side: string, batch: number): readonly Message[] => measured.get(`${side} ${batch}`) ?? [];
  const cpu = (side: string, batch: number): readonly number[] => of(side, batch).map(({ cpuUs }) => cpuUs);
  const ratio = (batch: number): number => ratioOf(cpu("belfry", batch), cpu("powertools", batch));
  const calls = (side: string, batch: number): string =>
    medianOf(of(side, batch).map((each) => each.calls)).toFixed(2);
  return {
    title: "The worker, for each message",
    text: [
      "Both sides claim before the handler and store its result after it, over the same stubbed transport, and write one log line. Ours",
      "also runs the handler in a thread that can be stopped, keeps a lease, and writes metrics. Processor time of all threads of the",
      `process, after 500 messages to warm up, ${rounds} rounds in turn.`,
      "",
      table(
        ["messages a batch", "belfry, us", "Powertools, us", "ratio", "calls, belfry", "calls, Powertools"],
        BATCHES.map((batch) => [
          String(batch),
          medianOf(cpu("belfry", batch)).toFixed(0),
          medianOf(cpu("powertools", batch)).toFixed(0),
          ratio(batch).toFixed(2),
          calls("belfry", batch),
          calls("powertools", batch),
        ]),
      ),
    ].join("\n"),
    budgets: [
      {
        what: "processor time of the worker a message, beside Powertools batch + idempotency",
        budget: `at most ${BUDGET} x`,
        measured: `${ratio(1).toFixed(2)} x`,
        met: ratio(1) <= BUDGET,
      },
    ],
  };
};
