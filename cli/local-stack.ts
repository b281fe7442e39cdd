import { type IncomingMessage, request } from "node:http";
import type { Call, Exchange } from "./exchange.ts";
import { NoStack, type StackFile } from "./stack-file.ts";

const bodyOf = async (response: IncomingMessage): Promise<unknown> => {
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk as Buffer);
  return JSON.parse(Buffer.concat(chunks).toString("utf8"));
};

// node:http and not fetch: loading fetch costs 20 ms of every command. No agent: the socket must not keep the
// process alive after the answer.
const send = (stack: StackFile, { method, path, body, signal }: Call): Promise<IncomingMessage> =>
  new Promise((resolve, reject) => {
    const payload = body === undefined ? undefined : JSON.stringify(body);
    const outgoing = request(
      {
        host: "127.0.0.1",
        port: stack.port,
        method,
        path,
        agent: false,
        ...(signal === undefined ? {} : { signal }),
        headers: {
          authorization: `Bearer ${stack.key}`,
          accept: "application/json",
          ...(payload === undefined ? {} : { "content-type": "application/json" }),
        },
      },
      resolve,
    );
    outgoing.on("error", reject);
    outgoing.end(payload);
  });

/** The router of a local stack, over HTTP with the key of its start. */
export const localExchange =
  (stack: StackFile): Exchange =>
  async (call) => {
    try {
      const response = await send(stack, call);
      return { status: response.statusCode ?? 0, body: await bodyOf(response) };
    } catch (cause) {
      const why = cause instanceof Error && "code" in cause ? ` (${String(cause.code)})` : "";
      throw new NoStack("no_answer", `the local stack on port ${stack.port} does not answer${why}`);
    }
  };
