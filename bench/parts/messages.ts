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
  /** Processor time of a dispatch; only ours has any. */
  readonly dispatchUs?: number;
}

/** What is left out: the network under the SDK's clients, or the clients' own work too. */
const WAYS = ["network", "clients"] as const;
type Way = (typeof WAYS)[number];

const SIDES = ["belfry", "powertools", "bare"] as const;
type SideName = (typeof SIDES)[number];

/** Whoever takes longer hangs. */
const LONGEST_MS = 180_000;

const measure = async (side: SideName, stubbed: Way): Promise<Message> => {
  const child = fork(PROCESS, [side, stubbed], {
    stdio: ["ignore", "ignore", "inherit", "ipc"],
    timeout: LONGEST_MS,
  });
  const exited = once(child, "exit");
  const [message] = await Promise.race([once(child, "message"), exited.then(() => [undefined])]);
  if (message === undefined) throw new Error(`${side} ended without an answer`);
  await exited;
  return message as Message;
};

const ROUNDS = 5;
/** See docs/decisions/0005-the-worker-costs-its-two-calls.md. */
const BUDGET = 1.6;

/** Processor time of the worker for each message, beside Powertools batch and idempotency doing the same work. */
export const messages = async (rounds: number): Promise<Section> => {
  const taken = Math.min(rounds, ROUNDS);
  const nameOf = (side: SideName, way: Way): string => `${side} ${way}`;
  const sides = WAYS.flatMap((way) =>
    SIDES.map((side) => ({ name: nameOf(side, way), measure: () => measure(side, way) })),
  );
  const measured = await alternate(sides, taken);
  const of = (side: SideName, way: Way): readonly Message[] => measured.get(nameOf(side, way)) ?? [];
  const cpuOf = (side: SideName, way: Way): readonly number[] => of(side, way).map(({ cpuUs }) => cpuUs);
  const ratio = (side: SideName, way: Way): string =>
    ratioOf(cpuOf(side, way), cpuOf("powertools", way)).toFixed(2);
  const [first] = WAYS;
  const dispatchUs = medianOf(of("belfry", first).map((message) => message.dispatchUs ?? Number.NaN));
  return {
    title: "The worker, for each message",
    text: [
      "Both claim before the handler and store its result after it, by two calls over the same stub, and write one log line. Ours also runs the",
      "handler in a thread that can be stopped, keeps a lease, reads the whole record back, and writes metrics. Bare are the two calls of the SDK",
      "and nothing else. Each has its clients as it would have them in a function. Processor time of all threads of the process without the",
      `stub's own, after 1,500 messages to warm up; rounds: ${taken}, in turn.`,
      "",
      table(
        [
          "stubbed",
          "belfry, us",
          "Powertools, us",
          "bare, us",
          "belfry to Powertools",
          "bare to Powertools",
          "calls",
        ],
        WAYS.map((way) => [
          way,
          ...SIDES.map((side) => medianOf(cpuOf(side, way)).toFixed(0)),
          ratio("belfry", way),
          ratio("bare", way),
          SIDES.map((side) => medianOf(of(side, way).map(({ calls }) => calls)).toFixed(0)).join(", "),
        ]),
      ),
      "",
      "The first target was half of Powertools. What the two calls of the SDK take by themselves is more than that, so nobody who claims before and",
      "stores after can meet it: [why, and what holds instead](../docs/decisions/0005-the-worker-costs-its-two-calls.md). A dispatch, which is",
      `three calls, takes ${dispatchUs.toFixed(0)} us with the network stubbed.`,
    ].join("\n"),
    budgets: [
      {
        what: "processor time of the worker a message, beside Powertools batch + idempotency",
        budget: `at most ${BUDGET} x`,
        measured: `${ratio("belfry", first)} x, of which the two bare calls are ${ratio("bare", first)} x`,
        met: Number(ratio("belfry", first)) <= BUDGET,
      },
    ],
  };
};
