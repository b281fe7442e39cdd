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

/** What is left out: the network under the SDK's clients, or the clients' own work too. */
const WAYS = [
  { batch: 1, stubbed: "clients" },
  { batch: 10, stubbed: "clients" },
  { batch: 1, stubbed: "network" },
] as const;
type Way = (typeof WAYS)[number];

const measure = async (side: string, { batch, stubbed }: Way): Promise<Message> => {
  const child = fork(PROCESS, [side, String(batch), stubbed], {
    stdio: ["ignore", "ignore", "inherit", "ipc"],
  });
  const [message] = await once(child, "message");
  await once(child, "exit");
  return message as Message;
};

const BUDGET = 0.5;

/** Processor time of the worker for each message, beside Powertools batch and idempotency doing the same work. */
export const messages = async (rounds: number): Promise<Section> => {
  const nameOf = (side: string, { batch, stubbed }: Way): string => `${side} ${batch} ${stubbed}`;
  const sides = WAYS.flatMap((way) =>
    ["belfry", "powertools"].map((side) => ({ name: nameOf(side, way), measure: () => measure(side, way) })),
  );
  const measured = await alternate(sides, Math.min(rounds, 3));
  const of = (side: string, way: Way, what: keyof Message): readonly number[] =>
    (measured.get(nameOf(side, way)) ?? []).map((message) => message[what]);
  const ratio = (way: Way): string =>
    ratioOf(of("belfry", way, "cpuUs"), of("powertools", way, "cpuUs")).toFixed(2);
  const median = (side: string, way: Way, what: keyof Message): string =>
    medianOf(of(side, way, what)).toFixed(0);
  const [first] = WAYS;
  return {
    title: "The worker, for each message",
    text: [
      "Both sides claim before the handler and store its result after it, over the same stub, and write one log line. Ours also runs the",
      "handler in a thread that can be stopped, keeps a lease, reads the whole record back, and writes metrics. Stubbed are the SDK's clients, or",
      "the network under them: there the two calls, which both make, take most of the time. Processor time of all threads of the process, after",
      `1,500 messages to warm up, ${Math.min(rounds, 3)} rounds in turn.`,
      "",
      table(
        [
          "stubbed",
          "messages a batch",
          "belfry, us",
          "Powertools, us",
          "ratio",
          "calls, belfry",
          "calls, Powertools",
        ],
        WAYS.map((way) => [
          way.stubbed,
          String(way.batch),
          median("belfry", way, "cpuUs"),
          median("powertools", way, "cpuUs"),
          ratio(way),
          median("belfry", way, "calls"),
          median("powertools", way, "calls"),
        ]),
      ),
    ].join("\n"),
    budgets: [
      {
        what: "processor time of the worker a message, beside Powertools batch + idempotency",
        budget: `at most ${BUDGET} x`,
        measured: `${ratio(first)} x`,
        met: Number(ratio(first)) <= BUDGET,
      },
    ],
  };
};
