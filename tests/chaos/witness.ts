import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

/** One execution of a handler, as the world outside saw it. Instants are those at which its words were sent. */
export interface Execution {
  readonly id: string;
  readonly runId: string;
  /** Which part of a run in shards: `list`, a shard's key, or `join`; empty for a whole run. */
  readonly part: string;
  readonly job: string;
  readonly attempt: number;
  readonly pid: number;
  readonly firstMs: number;
  lastMs: number;
  /** How it ended, in its own words; undefined: it never said so, for its process was killed. */
  ended: "returned" | "stopped" | undefined;
}

/** A foreign system: it hears handlers begin, go on and end, and acts once per idempotency key. */
export const startWitness = async () => {
  const executions = new Map<string, Execution>();
  const keyed = new Map<string, number>();
  const pieces: string[] = [];

  const hear = (query: URLSearchParams): void => {
    const word = (name: string): string => query.get(name) ?? "";
    const atMs = Number(word("at"));
    const id = word("id");
    const known = executions.get(id) ?? {
      id,
      runId: word("run"),
      part: word("part"),
      job: word("job"),
      attempt: Number(word("attempt")),
      pid: Number(word("pid")),
      firstMs: atMs,
      lastMs: atMs,
      ended: undefined,
    };
    executions.set(id, known);
    known.lastMs = Math.max(known.lastMs, atMs);
    const what = word("what");
    if (what === "returned" || what === "stopped") known.ended = what;
    if (what === "piece") pieces.push(word("key"));
    if (what === "effect") keyed.set(word("key"), (keyed.get(word("key")) ?? 0) + 1);
  };

  const server = createServer((request, response) => {
    hear(new URL(request.url ?? "/", "http://witness").searchParams);
    response.end("ok");
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    /** In the order in which they began. */
    executions: (): readonly Execution[] =>
      [...executions.values()].sort((left, right) => left.firstMs - right.firstMs),
    /** Effects that the system acted on, one per key, and how often it was asked for each. */
    keyed: (): ReadonlyMap<string, number> => keyed,
    /** Keys of the pieces of work, as they were done. */
    pieces: (): readonly string[] => pieces,
    close: (): void => {
      server.closeAllConnections();
      server.close();
    },
  };
};

/** Pairs that were at work at one instant although the second may only begin when the first is over. */
export const besideEachOther = (executions: readonly Execution[]): readonly [Execution, Execution][] => {
  const pairs: [Execution, Execution][] = [];
  for (const [index, later] of executions.entries()) {
    for (const earlier of executions.slice(0, index)) {
      if (earlier.lastMs >= later.firstMs) pairs.push([earlier, later]);
    }
  }
  return pairs;
};
