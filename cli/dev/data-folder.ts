import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { InvalidInput } from "../../lib/core/errors.ts";

/** What `<data>/dev.json` says of the running stack, to its own user's commands only. */
export interface StackFacts {
  readonly port: number;
  readonly key: string;
  readonly pid: number;
  readonly startedAt: string;
}

export interface DataFolder {
  readonly path: string;
  /** What the addresses of monitors are made of: they stay as they are for as long as the folder. */
  readonly pingSecret: string;
  /** Written when the stack is ready. */
  writeFacts(facts: StackFacts): void;
  /** Takes the facts back, and the folder itself where it was a temporary one. */
  release(): void;
}

const FACTS = "dev.json";
const PING_SECRET = "ping-secret";

const codeOf = (error: unknown): string =>
  error instanceof Error && "code" in error ? String(error.code) : String(error);

/** Of a folder in use: whose it is, as far as that can be read. */
const holderOf = (path: string): string => {
  try {
    const { pid, port }: { pid?: unknown; port?: unknown } = JSON.parse(
      readFileSync(join(path, FACTS), "utf8"),
    );
    return ` (process ${String(pid)}, port ${String(port)})`;
  } catch {
    return "";
  }
};

/**
 * A lock that the operating system holds for this process and drops with it, however it ends: no stale lock after
 * a kill -9, no process id to be mistaken. Undefined = somebody else holds it.
 */
export const holdLock = (file: string): { release(): void } | undefined => {
  const lock = new DatabaseSync(file);
  try {
    lock.exec("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE");
  } catch (error) {
    lock.close();
    if (error instanceof Error && /locked/.test(error.message)) return undefined;
    throw error;
  }
  return { release: () => lock.close() };
};

const create = (path: string): void => {
  try {
    // Records, inputs and the key of the operate router are nobody else's business.
    const made = mkdirSync(path, { recursive: true, mode: 0o700 });
    // Nor that of a repository. A folder that was there is not ours to mark.
    if (made !== undefined) writeFileSync(join(path, ".gitignore"), "*\n");
  } catch (error) {
    throw new InvalidInput("data_folder", `the data folder ${path} cannot be made (${codeOf(error)})`, {
      hint: "name another one with --data",
    });
  }
};

const take = (path: string): { release(): void } => {
  let lock: { release(): void } | undefined;
  try {
    lock = holdLock(join(path, "dev.lock"));
  } catch {
    throw new InvalidInput("data_folder", `the data folder ${path} cannot be written to`, {
      hint: "name another one with --data",
    });
  }
  if (lock === undefined) {
    throw new InvalidInput(
      "data_in_use",
      `the data folder ${path} belongs to a running stack${holderOf(path)}`,
      {
        hint: "stop that one, or name another folder with --data and another port with --port",
      },
    );
  }
  return lock;
};

/** Made when the folder is. */
const pingSecretIn = (path: string): string => {
  const file = join(path, PING_SECRET);
  if (existsSync(file)) return readFileSync(file, "utf8").trim();
  const secret = randomBytes(32).toString("base64url");
  writeFileSync(file, `${secret}\n`, { mode: 0o600 });
  return secret;
};

/**
 * Takes the folder for this process alone; none given = a temporary one, gone at the end.
 * @throws InvalidInput (`data_folder`, `data_in_use`), with nothing changed but perhaps an empty folder made.
 */
export const openDataFolder = (folder: string | undefined): DataFolder => {
  const path = folder === undefined ? mkdtempSync(join(tmpdir(), "belfry-")) : resolve(folder);
  create(path);
  const lock = take(path);
  const facts = join(path, FACTS);
  // One that a killed stack left behind would send commands to nobody.
  rmSync(facts, { force: true });
  return {
    path,
    pingSecret: pingSecretIn(path),
    writeFacts: (stack) => {
      writeFileSync(facts, `${JSON.stringify(stack)}\n`, { mode: 0o600 });
    },
    release: () => {
      rmSync(facts, { force: true });
      lock.release();
      if (folder === undefined) rmSync(path, { recursive: true, force: true });
    },
  };
};
