import { createServer, type Server } from "node:net";
import { InvalidInput } from "../../lib/core/errors.ts";

const HOST = "127.0.0.1";

const portOf = (server: Server): number => {
  const address = server.address();
  if (typeof address !== "object" || address === null) throw new Error("the socket has no port");
  return address.port;
};

/**
 * Takes a port of the loopback interface; 0 = any free one.
 * @throws InvalidInput (`port_in_use`) when somebody else has it, or may not be had.
 */
export const takePort = (port: number): Promise<{ readonly server: Server; readonly port: number }> =>
  new Promise((resolve, reject) => {
    // Nobody knows the port yet; a stray caller before the handover gets a closed connection, not silence.
    const server = createServer((connection) => connection.destroy());
    server.once("error", (error: NodeJS.ErrnoException) => {
      const why = error.code === "EADDRINUSE" ? "is in use" : `cannot be had (${error.code})`;
      reject(
        new InvalidInput("port_in_use", `port ${port} ${why}`, { hint: "name another one with --port" }),
      );
    });
    server.listen({ port, host: HOST, exclusive: true }, () => resolve({ server, port: portOf(server) }));
  });

/** So many ports that were free a moment ago, all different. */
export const freePorts = async (count: number): Promise<readonly number[]> => {
  const taken = await Promise.all(Array.from({ length: count }, () => takePort(0)));
  await Promise.all(taken.map(({ server }) => new Promise((resolve) => server.close(resolve))));
  return taken.map(({ port }) => port);
};

/** Of what serves the port of this stack. */
export const localUrl = (port: number): string => `http://${HOST}:${port}`;
