import type { Command } from "commander";
import type { JobActAnswer } from "../../lib/inbound/operate/answers.ts";
import type { ExitCode } from "../exit-codes.ts";
import { bothTexts } from "../times.ts";
import { addVerb, type CommonOptions, ending } from "../verb.ts";
import { actOnJob } from "./pause.ts";

interface MuteOptions extends CommonOptions {
  readonly until: string;
  readonly reason?: string;
}

const mute = (job: string, options: MuteOptions): Promise<ExitCode> => {
  const { until, reason } = options;
  const told = (answer: JobActAnswer): string => {
    const end = answer.until === undefined ? "-" : bothTexts(answer.until, answer.timezone);
    return `muted ${answer.job} until ${end}; its runs go on, and what is still wrong then is told`;
  };
  return actOnJob(job, { options, path: "mute", body: { until, reason }, told });
};

const unmute = (job: string, options: CommonOptions): Promise<ExitCode> =>
  actOnJob(job, {
    options,
    path: "unmute",
    told: (answer) => `unmuted ${answer.job}; what is still wrong is told within two minutes`,
  });

/** `belfry mute` and `unmute`: a planned silence. */
export const addMute = (program: Command): void => {
  addVerb(program, {
    usage: "mute <job>",
    summary: "tell nothing of a job for a time; its runs go on, and alerts wait",
    examples: [
      ["mute clean-sessions --until 2027-01-02T06:00 --reason 'database moves'", "a planned silence"],
    ],
    exits: ["0  muted", "4  no stack answers"],
  })
    .requiredOption("--until <time>", "from then on alerts are told again; without a zone it is the job's")
    .option("--reason <text>", "why; shown with the job and kept")
    .action(ending(mute));
};

export const addUnmute = (program: Command): void => {
  addVerb(program, {
    usage: "unmute <job>",
    summary: "end a planned silence; what is still wrong is told",
    examples: [["unmute clean-sessions", "before its time"]],
    exits: ["0  unmuted", "3  it is not muted", "4  no stack answers"],
  }).action(ending(unmute));
};
