import type { Fault } from "../../lib/core/read-options.ts";

/** A fault and the file, relative to the project, that it is in (with line and column where they are known). */
export interface BuildFault extends Fault {
  readonly file: string;
}

/** One line for each fault: `jobs/a.ts: timeout: "20 minutes" is too long; at most 15 minutes (a Lambda ...)`. */
export const formatFaults = (faults: readonly BuildFault[]): string =>
  faults
    .map(({ file, field, message, hint }) => {
      const what = field === undefined ? message : `${field}: ${message}`;
      return `${file}: ${what}${hint === undefined ? "" : ` (${hint})`}`.replaceAll(/\s*\n\s*/g, " ");
    })
    .join("\n");
