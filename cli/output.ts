import { InvalidInput, messageOf } from "../lib/core/errors.ts";
import { codeOfError } from "./exit-codes.ts";

/**
 * What a verb answers goes to stdout: a table for people, or one JSON document with `--json`. All else (progress,
 * hints, errors of the table form) goes to stderr, so that a pipe carries the answer and nothing else.
 */
export const printJson = (value: unknown): void => {
  process.stdout.write(`${JSON.stringify(value, undefined, process.stdout.isTTY ? 2 : undefined)}\n`);
};

export const printLines = (lines: readonly string[]): void => {
  if (lines.length > 0) process.stdout.write(`${lines.join("\n")}\n`);
};

export const note = (text: string): void => {
  process.stderr.write(`${text}\n`);
};

// Wide characters take two columns of a terminal; a table of Chinese descriptions would not line up without that.
const WIDE =
  /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]/gu;

const widthOf = (text: string): number => text.length + (text.match(WIDE)?.length ?? 0);

/** Columns padded to their widest cell, two spaces apart, no space at the end of a line. */
export const tableLines = (
  headings: readonly string[],
  rows: readonly (readonly string[])[],
): readonly string[] => {
  const lines = [headings, ...rows];
  const widths = headings.map((_, column) => Math.max(...lines.map((line) => widthOf(line[column] ?? ""))));
  return lines.map((line) =>
    line
      .map((cell, column) => cell + " ".repeat(Math.max(0, (widths[column] ?? 0) - widthOf(cell))))
      .join("  ")
      .trimEnd(),
  );
};

/** Name and value a line, the values under each other. */
export const pairLines = (pairs: readonly (readonly [name: string, value: string])[]): readonly string[] => {
  const width = Math.max(...pairs.map(([name]) => name.length));
  return pairs.map(([name, value]) => `${name.padEnd(width)}  ${value}`);
};

/** `{code, message, field?, hint?}`: the error as `--json` shows it. */
export const errorFacts = (error: unknown) => ({
  code: codeOfError(error),
  message: messageOf(error),
  ...(error instanceof InvalidInput && error.field !== undefined ? { field: error.field } : {}),
  ...hintOf(error),
});

const hintOf = (error: unknown): { hint?: string } =>
  error instanceof Error && "hint" in error && typeof error.hint === "string" ? { hint: error.hint } : {};

/** Which of the things that were given is wrong; nothing where the message says so itself. */
const fieldMark = ({ message, field }: { readonly message: string; readonly field?: string }): string =>
  field === undefined || message.includes(field) ? "" : `${field}: `;

/** One clear line (and a hint), or `{error: ...}` on stdout; never a stack trace. */
export const printError = (error: unknown, json: boolean): void => {
  const facts = errorFacts(error);
  if (json) printJson({ error: facts });
  else note(`error: ${fieldMark(facts)}${facts.message}${facts.hint === undefined ? "" : `\n${facts.hint}`}`);
};
