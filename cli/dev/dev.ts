import { join } from "node:path";
import { systemClock } from "../../lib/adapters/system/system.ts";
import { Unavailable } from "../../lib/core/errors.ts";
import { openDataFolder } from "./data-folder.ts";
import { takePort } from "./network-port.ts";
import { nodeNote } from "./node-version.ts";
import { runSession } from "./session.ts";
import { type DevOptions, type DevSettings, readSettings } from "./settings.ts";
import { listenForStop } from "./stop-signals.ts";

export type { DevOptions } from "./settings.ts";

const say = (line: string): void => {
  process.stdout.write(`${line}\n`);
};

const complain = (line: string): void => {
  process.stderr.write(`${line}\n`);
};

/** Port and folder for this process alone, before anything is touched. */
const take = async ({ port, folder }: DevSettings) => {
  const socket = await takePort(port);
  try {
    return { socket, folder: openDataFolder(folder) };
  } catch (error) {
    socket.server.close();
    throw error;
  }
};

const hinted = (error: Error, hint: string): Error => Object.assign(error, { hint });

/** An attached store that does not answer is a backend out of reach; an embedded one is our own failure. */
const asFailure = (error: unknown, { attached }: DevSettings, path: string): unknown => {
  if (!(error instanceof Unavailable)) return error;
  const stores = [...new Set(Object.values(attached))];
  if (stores.length > 0)
    return hinted(error, `AWS_ENDPOINT_URL... names ${stores.join(" and ")}: does it run?`);
  const where = `the files in ${join(path, "logs")} say more`;
  return hinted(
    new Error(`${error.message}; ${where}`, { cause: error }),
    `if the stores are damaged, delete ${path}: the next start begins anew, without the runs so far`,
  );
};

/**
 * `belfry dev`: runs the whole stack until SIGINT, SIGTERM or SIGHUP, and answers the exit code: 0 stopped, 1
 * running work was given up at its bound, 2 faults in the project's files, 130 ended by a second signal.
 * @throws InvalidInput when the port, the data folder or an endpoint cannot be had; nothing is changed then.
 * @throws Unavailable when an attached endpoint does not answer; Error when the stack cannot begin.
 */
export const devCommand = async (options: DevOptions): Promise<number> => {
  const startedAtMs = systemClock.nowMs() - performance.now();
  const settings = readSettings(options, process.env);
  const note = nodeNote(process.versions.node, settings.projectDir);
  const { folder, socket } = await take(settings);
  if (note !== undefined) complain(note);
  const signals = listenForStop(systemClock);
  try {
    return await runSession({ settings, folder, socket, signals, startedAtMs, say, complain });
  } catch (error) {
    throw asFailure(error, settings, folder.path);
  } finally {
    signals.dispose();
    socket.server.close();
    folder.release();
  }
};
