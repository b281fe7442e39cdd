import { fileURLToPath } from "node:url";
import { nodeNote } from "../../cli/dev/node-version.ts";

/** One line when the tests run on another Node than the jobs will. */
export const setup = (): void => {
  const note = nodeNote(process.versions.node, fileURLToPath(new URL("../..", import.meta.url)));
  if (note !== undefined) console.error(note);
};
