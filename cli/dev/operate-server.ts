import { createHash, timingSafeEqual } from "node:crypto";
import type { Server as HttpServer } from "node:http";
import type { Server } from "node:net";
import { getRequestListener } from "@hono/node-server";

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

export interface OperateServer {
  /** Answers what has been asked, takes nothing more. */
  close(): Promise<void>;
}

/** Serves the router on a socket that already listens. */
export const serveOperate = async (
  http: HttpServer,
  socket: Server,
  fetch: Fetch,
): Promise<OperateServer> => {
  http.on("request", getRequestListener(fetch));
  await new Promise<void>((resolve) => http.listen(socket, resolve));
  return {
    close: () =>
      new Promise((resolve) => {
        http.close(() => resolve());
        http.closeIdleConnections();
      }),
  };
};
