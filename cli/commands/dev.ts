import type { Command } from "commander";
import type { ExitCode } from "../exit-codes.ts";
import { addVerb, type CommonOptions, ending, wholeNumber } from "../verb.ts";

interface DevOptions extends CommonOptions {
  readonly port?: number;
  readonly ephemeral?: true;
  readonly allowRemoteEndpoint?: true;
}

const dev = async ({ port, data, ephemeral, allowRemoteEndpoint }: DevOptions): Promise<ExitCode> => {
  const { devCommand } = await import("../dev/dev.ts");
  return (await devCommand({
    ...(port === undefined ? {} : { port }),
    ...(data === undefined ? {} : { data }),
    ...(ephemeral === undefined ? {} : { ephemeral }),
    ...(allowRemoteEndpoint === undefined ? {} : { allowRemoteEndpoint }),
  })) as ExitCode;
};

/** `belfry dev`: the whole stack by one command. */
export const addDev = (program: Command): void => {
  addVerb(program, {
    usage: "dev",
    summary: "run the whole stack on this machine",
    examples: [
      ["dev", "start; Ctrl-C lets running work finish and ends it"],
      ["dev --port 4200 --data .belfry-2", "a second stack beside the first"],
      ["dev --ephemeral", "forget everything at the end"],
    ],
    exits: [
      "0  stopped by Ctrl-C or SIGTERM",
      "1  the stack failed",
      "4  an attached endpoint does not answer",
    ],
  })
    .addOption(wholeNumber("--port <port>", "port of the operate router on loopback", [1, 65_535]))
    .option("--ephemeral", "keep the data in a temporary folder that is removed at the end")
    .option("--allow-remote-endpoint", "allow AWS_ENDPOINT_URL to point beyond this machine")
    .action(ending(dev));
};
