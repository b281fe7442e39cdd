import type { Command } from "commander";
import { connect } from "../client.ts";
import type { ExitCode } from "../exit-codes.ts";
import { addVerb, type CommonOptions, ending } from "../verb.ts";
import { actOnRuns, confirm } from "./acts.ts";

interface CancelOptions extends CommonOptions {
  readonly reason?: string;
  readonly yes?: true;
}

const cancel = async (runIds: readonly string[], options: CancelOptions): Promise<ExitCode> => {
  const operate = connect(options);
  await confirm(`cancel ${runIds.join(", ")}?`, options.yes === true);
  const body = options.reason === undefined ? {} : { reason: options.reason };
  return actOnRuns(operate, runIds, { path: "cancel", body, json: options.json === true });
};

/** `belfry cancel`: ends runs that are not over. */
export const addCancel = (program: Command): void => {
  addVerb(program, {
    usage: "cancel <runs...>",
    summary: "end runs that are queued, waiting or parked, and ask running ones to stop",
    examples: [
      ["cancel clean-sessions~20261007T180000Z --yes", "without asking"],
      ["cancel clean-sessions~20261007T180000Z --reason 'wrong input'", "with the reason kept"],
    ],
    exits: ["0  cancelled, or asked to stop", "3  one is over already", "4  no stack answers"],
  })
    .option("--reason <text>", "why, kept with the run")
    .option("--yes", "do not ask")
    .action(ending(cancel));
};
