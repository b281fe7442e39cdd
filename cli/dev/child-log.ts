import { closeSync, existsSync, fstatSync, mkdirSync, openSync, renameSync, writeSync } from "node:fs";
import { join } from "node:path";
import { StringDecoder } from "node:string_decoder";

/** What one child has printed, kept in a file and handed on line by line. */
export interface ChildLog {
  write(chunk: Buffer): void;
  close(): void;
}

/** Two files of that size hold days of wide events; a handler that prints in a loop must not fill the disk. */
const LARGEST_BYTES = 16 * 1_024 * 1_024;
/** A line without an end is cut there. */
const LONGEST_LINE = 1_024 * 1_024;

const openLog = (file: string): { descriptor: number; bytes: number } => {
  const descriptor = openSync(file, "a", 0o600);
  return { descriptor, bytes: fstatSync(descriptor).size };
};

/** Appends to `<folder>/<name>.log`; a full one is moved to `<name>.log.1` first. */
export const openChildLog = (folder: string, name: string, onLine: (line: string) => void): ChildLog => {
  mkdirSync(folder, { recursive: true });
  const file = join(folder, `${name}.log`);
  let log = openLog(file);
  let rest = "";
  let isClosed = false;
  const decoder = new StringDecoder("utf8");

  const append = (chunk: Buffer): void => {
    if (log.bytes + chunk.length > LARGEST_BYTES && existsSync(file)) {
      closeSync(log.descriptor);
      renameSync(file, `${file}.1`);
      log = openLog(file);
    }
    writeSync(log.descriptor, chunk);
    log.bytes += chunk.length;
  };

  return {
    write: (chunk) => {
      // The last words of a child that was killed may come when all else is over.
      if (isClosed) return;
      append(chunk);
      const lines = (rest + decoder.write(chunk)).split("\n");
      rest = (lines.pop() ?? "").slice(0, LONGEST_LINE);
      for (const line of lines) onLine(line);
    },
    close: () => {
      isClosed = true;
      if (rest !== "") onLine(rest);
      closeSync(log.descriptor);
    },
  };
};
