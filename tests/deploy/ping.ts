import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { request } from "node:https";
import { text } from "node:stream/consumers";
import type { Emulator } from "./emulator.ts";

export interface Answered {
  readonly status: number;
  readonly body: string;
}

/**
 * From outside, as `curl` would. The emulator has the address's host on its own port; no name server knows it, and it is no
 * URL, for it ends in a number.
 */
export const pingAt = async (
  { endpoint, certificate }: Pick<Emulator, "endpoint" | "certificate">,
  url: string,
): Promise<Answered> => {
  const { hostname, port } = new URL(endpoint);
  const [, host, path] = /^https?:\/\/([^/]+)(\/.*)$/.exec(url) ?? [];
  if (host === undefined) throw new Error(`no address to ping: ${url}`);
  const asked = request({
    hostname,
    port,
    ca: certificate,
    servername: "localhost",
    path,
    headers: { host },
  }).end();
  const [response] = (await once(asked, "response")) as [IncomingMessage];
  return { status: response.statusCode ?? 0, body: await text(response) };
};
