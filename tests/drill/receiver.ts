import { createHmac, randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";

export type ChannelName = "chat" | "pager";

/** One message that a channel has taken. */
export interface Told {
  readonly atMs: number;
  /** Which channel, what kind, whither, and of which run, job or alarm: `chat failed notify throws~20261130T170000Z`. */
  readonly line: string;
}

const lineOf = (channel: string, body: Record<string, unknown>): string =>
  [channel, body["kind"], body["topic"], body["runId"] ?? body["job"] ?? body["alarm"] ?? "-"].join(" ");

/** The two channels that the drill's stacks tell, and the place where its handlers say that they have begun. */
export const startReceiver = async () => {
  const key = randomBytes(32).toString("hex");
  const told: Told[] = [];
  /** Messages that were not as the documentation says. */
  const faults: string[] = [];
  const down = new Set<string>();
  const refused: number[] = [];
  const begun: { readonly job: string; readonly workerPid: number }[] = [];

  const isSigned = ({ headers }: IncomingMessage, body: string): boolean => {
    const content = `${headers["webhook-id"]}.${headers["webhook-timestamp"]}.${body}`;
    return (
      headers["webhook-signature"] === `v1,${createHmac("sha256", key).update(content).digest("base64")}`
    );
  };

  const take = (channel: string, request: IncomingMessage, body: string): number => {
    if (down.has(channel)) {
      refused.push(Date.now());
      return 503;
    }
    if (!isSigned(request, body)) faults.push(`${channel}: a message whose signature is wrong: ${body}`);
    told.push({ atMs: Date.now(), line: lineOf(channel, JSON.parse(body)) });
    return 204;
  };

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
    /** When messages came to a channel that was down. */
    refused: refused as readonly number[],
    begun: begun as readonly (typeof begun)[number][],
    goDown: (channel: ChannelName): void => {
      down.add(channel);
    },
    comeBack: (channel: ChannelName): void => {
      down.delete(channel);
    },
    close: (): void => {
      server.closeAllConnections();
      server.close();
    },
  };
};

export type Receiver = Awaited<ReturnType<typeof startReceiver>>;
