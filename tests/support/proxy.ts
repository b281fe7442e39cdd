import { once } from "node:events";
import { Agent, createServer, type IncomingHttpHeaders, type IncomingMessage, request } from "node:http";
import type { AddressInfo } from "node:net";

export interface ProxyAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

/** One call on its way to the service. */
export interface ProxiedCall {
  readonly body: Buffer;
  /** Hands it on; the service's answer. */
  forward(): Promise<ProxyAnswer>;
}

const bodyOf = async (message: IncomingMessage): Promise<Buffer> => {
  const chunks: Buffer[] = [];
  for await (const chunk of message) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
};

/** A refusal as the JSON protocols of AWS write it. */
export const refusal = (type: string, message: string, headers: IncomingHttpHeaders = {}): ProxyAnswer => ({
  status: 400,
  headers: { ...headers, "content-type": "application/x-amz-json-1.0" },
  body: Buffer.from(JSON.stringify({ __type: type, message })),
});

/**
 * Stands before a service on this machine and lets `answerTo` decide what becomes of each call. Where that answers
 * undefined or rejects, the connection just ends.
 */
export const startProxy = async (
  target: string,
  answerTo: (call: ProxiedCall) => Promise<ProxyAnswer | undefined>,
) => {
  const agent = new Agent({ keepAlive: true });
  const { hostname, port } = new URL(target);

  const forward = async (incoming: IncomingMessage, body: Buffer): Promise<ProxyAnswer> => {
    const { method, url: path, headers } = incoming;
    const outgoing = request({ agent, hostname, port, method, path, headers });
    outgoing.end(body);
    const [answer] = (await once(outgoing, "response")) as [IncomingMessage];
    return { status: answer.statusCode ?? 502, headers: answer.headers, body: await bodyOf(answer) };
  };

  const take = async (incoming: IncomingMessage): Promise<ProxyAnswer | undefined> => {
    const body = await bodyOf(incoming);
    return answerTo({ body, forward: () => forward(incoming, body) });
  };

  const server = createServer((incoming, outgoing) => {
    // A caller that is killed in the middle of its call is no fault of ours.
    take(incoming).then(
      (answer) => {
        if (answer === undefined) incoming.socket.destroy();
        else outgoing.writeHead(answer.status, answer.headers).end(answer.body);
      },
      () => incoming.socket.destroy(),
    );
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: (): void => {
      server.closeAllConnections();
      server.close();
      agent.destroy();
    },
  };
};
