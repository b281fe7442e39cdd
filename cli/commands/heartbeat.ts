import type { Command } from "commander";
import { InvalidInput } from "../../lib/core/errors.ts";
import type { Signal } from "../../lib/core/monitors/ping.ts";
import type { HeartbeatAnswer, PingAddressAnswer } from "../../lib/inbound/operate/answers.ts";
import { connect } from "../client.ts";
import { EXIT, type ExitCode } from "../exit-codes.ts";
import { printJson, printLines } from "../output.ts";
import { bothTexts } from "../times.ts";
import { addVerb, type CommonOptions, ending, wholeNumber } from "../verb.ts";

interface HeartbeatOptions extends CommonOptions {
  readonly message?: string;
  readonly slot?: string;
  readonly duration?: number;
  readonly url?: boolean;
}

const SIGNALS: readonly string[] = ["start", "ok", "fail"] satisfies readonly Signal[];

/** As the command line has it. */
const signalOf = (text: string): string | number => {
  if (SIGNALS.includes(text)) return text;
  if (/^\d{1,10}$/.test(text)) return Number(text);
  throw new InvalidInput("usage", `"${text}" is neither start, ok, fail nor an exit code`, {
    field: "signal",
    hint: 'belfry heartbeat <monitor> "$?" right after the command tells how it ended',
  });
};

const toldOf = ({ run, timezone, duplicate }: HeartbeatAnswer): string =>
  `${duplicate ? "known already: " : ""}${run.state} ${run.runId}, slot ${bothTexts(run.slot, timezone)}`;

const heartbeat = async (monitor: string, signal: string, options: HeartbeatOptions): Promise<ExitCode> => {
  const { message, slot, duration } = options;
  const body = {
    signal: signalOf(signal),
    message,
    slot,
    ...(duration === undefined ? {} : { durationMs: duration * 1_000 }),
  };
  const path = `/v1/jobs/${encodeURIComponent(monitor)}/heartbeat`;
  const answer = await connect(options).post<HeartbeatAnswer>(path, body);
  if (options.json) printJson({ run: answer.run, duplicate: answer.duplicate });
  else printLines([toldOf(answer)]);
  return EXIT.done;
};

/** Printed alone, so that a script can take it. */
const address = async (monitor: string, options: HeartbeatOptions): Promise<ExitCode> => {
  const path = `/v1/jobs/${encodeURIComponent(monitor)}/ping-address`;
  const answer = await connect(options).get<PingAddressAnswer>(path);
  if (options.json) printJson(answer);
  else printLines([answer.url]);
  return EXIT.done;
};

/** `belfry heartbeat`: a ping of a job that runs elsewhere. */
export const addHeartbeat = (program: Command): void => {
  addVerb(program, {
    usage: "heartbeat <monitor> [signal]",
    summary:
      "tell that a job which runs elsewhere started, succeeded or failed: start, ok (default), fail or its exit code",
    examples: [
      ["heartbeat nightly-backup start", "it has begun"],
      ["heartbeat nightly-backup ok --message '3 GB'", "it succeeded"],
      ["heartbeat nightly-backup 2", "it ended with exit code 2: it failed"],
      ["heartbeat nightly-backup --url", "the address to ping from where there is no belfry"],
    ],
    exits: ["0  taken, also when it was known already", "3  no slot is near enough", "4  no stack answers"],
  })
    .option("--message <text>", "its own words, kept with the run; the first 200 characters")
    .option(
      "--slot <time>",
      "counts for this slot (default: the run that has started, else the nearest slot)",
    )
    .addOption(
      wholeNumber("--duration <seconds>", "how long it took, where its start was not told", [0, 2_592_000]),
    )
    .option("--url", "tell nothing; print the address that the job can ping by HTTP, with its key")
    .action(
      ending((name: string, signal: string | undefined, options: HeartbeatOptions) =>
        options.url === true ? address(name, options) : heartbeat(name, signal ?? "ok", options),
      ),
    );
};
