import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { onTestFinished } from "vitest";

export interface Received {
  readonly method: string | undefined;
  readonly url: URL;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

export interface HttpReceiver {
  readonly address: string;
  readonly received: Received[];
  /** The next answers; then 200 with `standard`. */
  readonly answers: {
    readonly status?: number;
    readonly body?: string;
    readonly headers?: Record<string, string>;
  }[];
  close(): Promise<void>;
}

/** A server on this machine that keeps what it is sent; it ends with the test. */
export const httpReceiver = async (standard = ""): Promise<HttpReceiver> => {
  const received: Received[] = [];
  const answers: HttpReceiver["answers"] = [];
  const server = createServer(async (request, response) => {
    const body = await text(request);
    const url = new URL(request.url ?? "/", "http://receiver");
    received.push({ method: request.method, url, headers: request.headers, body });
    const { status = 200, body: answer, headers = {} } = answers.shift() ?? {};
    response.writeHead(status, headers).end(answer ?? (status === 200 ? standard : ""));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  let closed: Promise<void> | undefined;
  const close = (): Promise<void> => {
    closed ??= new Promise((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
    return closed;
  };
  onTestFinished(close);
  return { address: `http://127.0.0.1:${port}`, received, answers, close };
};
