import type { Command } from "commander";
import { connect } from "../client.ts";
import type { ExitCode } from "../exit-codes.ts";
import { addVerb, type CommonOptions, ending } from "../verb.ts";
import { actOnRuns } from "./acts.ts";

const dismiss = (runIds: readonly string[], options: CommonOptions): Promise<ExitCode> =>
  actOnRuns(connect(options), runIds, { path: "dismiss", json: options.json === true });

/** `belfry dismiss`: bad endings that somebody has seen. */
export const addDismiss = (program: Command): void => {
  addVerb(program, {
    usage: "dismiss <runs...>",
    summary: "take runs that ended badly off the list; their records stay",
    examples: [["dismiss clean-sessions~20261007T180000Z", "seen, and nothing to do"]],
    exits: ["0  off the list", "3  one is not on it", "4  no stack answers"],
  }).action(ending(dismiss));
};
