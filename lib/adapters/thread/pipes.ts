import type { ChildProcess } from "node:child_process";

/** What a child wrote last still arrives within this. */
const LAST_WORDS_MS = 500;

/** Of a child that has ended. A program that a handler has started may hold our end of its pipes open; not us. */
export const letGoOfPipes = ({ stdout, stderr }: ChildProcess): void => {
  setTimeout(() => {
    stdout?.destroy();
    stderr?.destroy();
  }, LAST_WORDS_MS).unref();
};
