import { readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { Unavailable } from "../lib/core/errors.ts";

/** What a running local stack writes to `<data>/dev.json`, readable by its user only. */
export interface StackFile {
  readonly port: number;
  readonly key: string;
  readonly pid: number;
  readonly startedAt: string;
}

const FILE_NAME = "dev.json";

const HINT = 'start one with "npx belfry dev", or name a deployed stage with --stage';

/** An error with the next thing to do. */
export class NoStack extends Unavailable {
  readonly hint: string | undefined;

  constructor(code: string, message: string, hint?: string) {
    super(code, message);
    this.hint = hint;
  }
}

const noStack = (message: string): NoStack => new NoStack("no_stack", message, HINT);

const read = (path: string): string | undefined => {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
};

/** `.belfry` in the folder or the nearest one above it that holds a stack's file. */
const findUpward = (from: string): string | undefined => {
  for (let folder = resolve(from); ; folder = dirname(folder)) {
    const text = read(join(folder, ".belfry", FILE_NAME));
    if (text !== undefined) return text;
    if (folder === dirname(folder)) return undefined;
  }
};

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // A process of another user is alive too; it may only not be signalled.
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
};

const parse = (text: string): StackFile => {
  let raw: unknown;
  try {
    raw = JSON.parse(text);
  } catch {
    raw = undefined;
  }
  const { port, key, pid, startedAt } = (raw ?? {}) as Partial<Record<keyof StackFile, unknown>>;
  if (typeof port !== "number" || typeof key !== "string" || typeof pid !== "number")
    throw noStack(`the local stack's ${FILE_NAME} cannot be read`);
  return { port, key, pid, startedAt: String(startedAt ?? "") };
};

/**
 * The running local stack, by its data folder: the one given, else BELFRY_DATA, else `.belfry` in the working
 * folder or above it.
 * @throws Unavailable (`no_stack`) where there is none, or its process is gone.
 */
export const findStack = (data: string | undefined): StackFile => {
  const folder = data ?? process.env["BELFRY_DATA"];
  const text = folder === undefined ? findUpward(process.cwd()) : read(join(folder, FILE_NAME));
  if (text === undefined) throw noStack("no local stack is running here, and no --stage is given");
  const stack = parse(text);
  if (!isAlive(stack.pid)) throw noStack("the local stack is no longer running, and no --stage is given");
  return stack;
};
