import { once } from "node:events";
import { createServer } from "node:http";

/**
 * The embedded stack's own small web site, for the demo's links: each worker that checks them has one, on the loopback
 * address and a free port. `/broken` is not there. It keeps no worker from ending.
 */
const start = async (): Promise<string> => {
  const server = createServer(({ url }, response) => {
    response.statusCode = url === "/broken" ? 404 : 200;
    response.end(`<title>${response.statusCode}</title>`);
  });
  server.listen(0, "127.0.0.1").unref();
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the pages have no port");
  return `http://127.0.0.1:${address.port}`;
};

let started: Promise<string> | undefined;

/** The pages' origin. */
export const openPages = (): Promise<string> => {
  started ??= start();
  return started;
};
