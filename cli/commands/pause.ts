import type { Command } from "commander";
import type { JobActAnswer } from "../../lib/inbound/operate/answers.ts";
import { connect } from "../client.ts";
import { EXIT, type ExitCode } from "../exit-codes.ts";
import { printJson, printLines } from "../output.ts";
import { bothTexts } from "../times.ts";
import { addVerb, type CommonOptions, ending } from "../verb.ts";

interface PauseOptions extends CommonOptions {
  readonly reason: string;
  readonly until?: string;
}

export interface JobAct {
  readonly options: CommonOptions;
  readonly path: "pause" | "resume" | "skip-next" | "mute" | "unmute";
  readonly body?: object;
  readonly told: (answer: JobActAnswer) => string;
}

/** Asks for it, and tells the answer: as JSON, or in a sentence. */
export const actOnJob = async (job: string, { options, path, body, told }: JobAct): Promise<ExitCode> => {
  const answer = await connect(options).post<JobActAnswer>(
    `/v1/jobs/${encodeURIComponent(job)}/${path}`,
    body ?? {},
  );
  if (options.json) printJson(answer);
  else printLines([told(answer)]);
  return EXIT.done;
};

const pause = (job: string, options: PauseOptions): Promise<ExitCode> => {
  const { reason, until } = options;
  const told = (answer: JobActAnswer): string => {
    const end = answer.until === undefined ? "it is resumed" : bothTexts(answer.until, answer.timezone);
    return `paused ${answer.job} until ${end}; its slots are recorded as skipped, runs by hand go ahead`;
  };
  return actOnJob(job, { options, path: "pause", body: { reason, until }, told });
};

const resume = (job: string, options: CommonOptions): Promise<ExitCode> =>
  actOnJob(job, {
    options,
    path: "resume",
    told: (answer) => `resumed ${answer.job}; slots that passed meanwhile stay skipped`,
  });

const skipNext = (job: string, options: CommonOptions): Promise<ExitCode> =>
  actOnJob(job, {
    options,
    path: "skip-next",
    told: ({ slot, timezone }) =>
      `will skip ${slot === undefined ? "-" : bothTexts(slot, timezone)}, and only that`,
  });

/** `belfry pause`, `resume` and `skip-next`: what becomes of a job's slots to come. */
export const addPause = (program: Command): void => {
  addVerb(program, {
    usage: "pause <job>",
    summary: "skip the slots of a job until it is resumed; claimed runs go on",
    examples: [
      ["pause clean-sessions --reason 'database moves'", "until belfry resume"],
      [
        "pause clean-sessions --reason holiday --until 2027-01-02",
        "fires again from that midnight of its zone",
      ],
    ],
    exits: ["0  paused", "4  no stack answers"],
  })
    .requiredOption("--reason <text>", "why; shown with the job and kept")
    .option("--until <time>", "the first instant at which it fires again; without a zone it is the job's")
    .action(ending(pause));
};

export const addResume = (program: Command): void => {
  addVerb(program, {
    usage: "resume <job>",
    summary: "let a paused job fire again; nothing is made up for",
    examples: [["resume clean-sessions", "from its next slot on"]],
    exits: ["0  resumed", "3  it is not paused", "4  no stack answers"],
  }).action(ending(resume));
};

export const addSkipNext = (program: Command): void => {
  addVerb(program, {
    usage: "skip-next <job>",
    summary: "skip the next slot of a job, and only that",
    examples: [["skip-next clean-sessions", "answers which slot that is"]],
    exits: ["0  it will be skipped", "3  the job has no next slot", "4  no stack answers"],
  }).action(ending(skipNext));
};
