import { createHash, timingSafeEqual } from "node:crypto";
import type { Server as HttpServer } from "node:http";
import type { Server } from "node:net";
import { getRequestListener } from "@hono/node-server";
import { PINGS } from "../../lib/core/monitors/monitor.ts";
import type { Timers } from "../../lib/ports/clock.ts";

type Fetch = (request: Request) => Promise<Response>;

const digest = (text: string): Buffer => createHash("sha256").update(text).digest();

const refusal = (): Response =>
  Response.json(
    {
      type: "about:blank",
      title: "Unauthorized",
      status: 401,
      code: "unauthorized",
      detail: "the key is missing or wrong",
    },
    { status: 401, headers: { "content-type": "application/problem+json", "www-authenticate": "Bearer" } },
  );

/** Lets a request through to the router only with the key of this start, as `Authorization: Bearer <key>`. */
export const withKey = (key: string, fetch: Fetch): Fetch => {
  const expected = digest(`Bearer ${key}`);
  return async (request) => {
    // Digests are of one length, so the comparison tells nothing by its time.
    const given = digest(request.headers.get("authorization") ?? "");
    return timingSafeEqual(given, expected) ? fetch(request) : refusal();
  };
};

/** Pings of monitors come by a door of their own. */
export const bothDoors =
  (pings: Fetch, operate: Fetch): Fetch =>
  (request) =>
    new URL(request.url).pathname.startsWith(PINGS) ? pings(request) : operate(request);

/** A caller that waits for a run which will not end any more is cut off then. */
const CLOSE_GRACE_MS = 1_000;

export interface OperateServer {
  /** Answers what has been asked, if it can be soon; takes nothing more. */
  close(): Promise<void>;
}

/** Serves the router on a socket that already listens. */
export const serveOperate = async (
  http: HttpServer,
  socket: Server,
  fetch: Fetch,
  timers: Timers,
): Promise<OperateServer> => {
  http.on("request", getRequestListener(fetch));
  await new Promise<void>((resolve) => http.listen(socket, resolve));
  return {
    close: async () => {
      const closed = new Promise((resolve) => http.close(resolve));
      http.closeIdleConnections();
      const timer = timers.after(CLOSE_GRACE_MS, () => http.closeAllConnections());
      await closed;
      timer.cancel();
    },
  };
};
