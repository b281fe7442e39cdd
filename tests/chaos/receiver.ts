import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

/** An effect on the world outside the stack, as it arrived. */
export interface Effect {
  readonly runId: string;
  readonly attempt: number;
  readonly key: string;
  readonly atMs: number;
}

/** A foreign system that keeps every request, and acts once per idempotency key. */
export const startReceiver = async () => {
  const effects: Effect[] = [];
  const keyed = new Map<string, number>();
  let waiting: { readonly count: number; readonly resolve: () => void } | undefined;
  const server = createServer((request, response) => {
    const query = new URL(request.url ?? "/", "http://receiver").searchParams;
    const effect = {
      runId: query.get("run") ?? "",
      attempt: Number(query.get("attempt")),
      key: query.get("key") ?? "",
      atMs: Date.now(),
    };
    effects.push(effect);
    if (!keyed.has(effect.key)) keyed.set(effect.key, 1);
    response.end("ok");
    if (waiting !== undefined && effects.length >= waiting.count) waiting.resolve();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    effects,
    /** Effects that the system acted on: one per key. */
    keyedCount: (): number => keyed.size,
    /** Resolves as soon as so many effects have arrived in all. */
    untilCount: (count: number): Promise<void> =>
      effects.length >= count
        ? Promise.resolve()
        : new Promise((resolve) => {
            waiting = { count, resolve };
          }),
    close: (): void => {
      server.closeAllConnections();
      server.close();
    },
  };
};

export type Receiver = Awaited<ReturnType<typeof startReceiver>>;
