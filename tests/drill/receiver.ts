import { createHmac, randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";

/** One message that a channel has taken. */
export interface Told {
  readonly atMs: number;
  /** Which channel, what kind, whither, and of which run, job or alarm: `chat failed notify throws~20261130T170000Z`. */
  readonly line: string;
}

const lineOf = (channel: string, body: Record<string, unknown>): string =>
  [channel, body["kind"], body["topic"], body["runId"] ?? body["job"] ?? body["alarm"] ?? "-"].join(" ");

const tally = (lines: readonly string[]): ReadonlyMap<string, number> =>
  new Map([...Map.groupBy(lines, (line) => line)].map(([line, same]) => [line, same.length]));

/**
 * The channels that the drill's stacks tell, and the place where its handlers say that they have begun. `chat` and `room`
 * hear the same; `room` takes nothing for so long.
 */
export const startReceiver = async ({ roomAwayMs }: { readonly roomAwayMs: number }) => {
  const startedAtMs = Date.now();
  const roomBackAtMs = startedAtMs + roomAwayMs;
  const key = randomBytes(32).toString("hex");
  const told: Told[] = [];
  /** Messages that were not as the documentation says. */
  const faults: string[] = [];
  const refused: number[] = [];
  const begun: { readonly job: string; readonly workerPid: number }[] = [];

  const isSigned = ({ headers }: IncomingMessage, body: string): boolean => {
    const content = `${headers["webhook-id"]}.${headers["webhook-timestamp"]}.${body}`;
    return (
      headers["webhook-signature"] === `v1,${createHmac("sha256", key).update(content).digest("base64")}`
    );
  };

  const take = (channel: string, request: IncomingMessage, body: string): number => {
    if (channel === "room" && Date.now() < roomBackAtMs) {
      refused.push(Date.now());
      return 503;
    }
    if (!isSigned(request, body)) faults.push(`${channel}: a message whose signature is wrong: ${body}`);
    told.push({ atMs: Date.now(), line: lineOf(channel, JSON.parse(body)) });
    return 204;
  };

  /** What a channel has heard, without its name. */
  const heardBy = (channel: string): readonly string[] =>
    told.flatMap(({ line }) => (line.startsWith(`${channel} `) ? [line.slice(channel.length + 1)] : []));

  const server = createServer(async (request, response) => {
    const url = new URL(request.url ?? "/", "http://receiver");
    const body = await text(request);
    const [, name = ""] = url.pathname.split("/");
    if (name === "begun") {
      begun.push({
        job: String(url.searchParams.get("job")),
        workerPid: Number(url.searchParams.get("worker")),
      });
      response.writeHead(204).end();
    } else response.writeHead(take(name, request, body)).end();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    key,
    told: told as readonly Told[],
    faults: faults as readonly string[],
    startedAtMs,
    roomBackAtMs,
    /** When messages came to the room while it was away. */
    refused: refused as readonly number[],
    /** What the room has not heard as often as the chat, or more often. */
    unlikeChat: (): readonly string[] => {
      const [chat, room] = [tally(heardBy("chat")), tally(heardBy("room"))];
      return [...new Set([...chat.keys(), ...room.keys()])].flatMap((line) => {
        const [wanted, heard] = [chat.get(line) ?? 0, room.get(line) ?? 0];
        return wanted === heard ? [] : [`told the room ${heard} times, the chat ${wanted} times: ${line}`];
      });
    },
    begun: begun as readonly (typeof begun)[number][],
    close: (): void => {
      server.closeAllConnections();
      server.close();
    },
  };
};

export type Receiver = Awaited<ReturnType<typeof startReceiver>>;
