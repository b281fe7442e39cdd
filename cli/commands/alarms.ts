import type { Command } from "commander";
import type { AlarmsAnswer, AlarmView } from "../../lib/inbound/operate/answers.ts";
import { connect } from "../client.ts";
import { EXIT, type ExitCode } from "../exit-codes.ts";
import { note, printJson, printLines } from "../output.ts";
import { addVerb, type CommonOptions, ending } from "../verb.ts";

const CLOUDWATCH =
  "the alarms of a deployed stage are in CloudWatch, on the dashboard <service>-<stage>-belfry";

const linesOf = ({ key, since, meaning, remedy }: AlarmView): readonly string[] => [
  `${key}, since ${since}`,
  `  ${meaning}`,
  `  ${remedy}`,
];

/** One line for the end of another answer. */
export const alarmLine = ({ alarms }: AlarmsAnswer): string => {
  const keys = alarms?.map(({ key }) => key) ?? [];
  return `alarms: ${keys.length === 0 ? "none" : `${keys.join(", ")} ("belfry alarms" says more)`}`;
};

const alarms = async (options: CommonOptions): Promise<ExitCode> => {
  const { alarms: ringing } = await connect(options).get<AlarmsAnswer>("/v1/alarms");
  if (options.json) printJson(ringing);
  else if (ringing === null) note(CLOUDWATCH);
  else if (ringing.length === 0) note("no alarm rings");
  else printLines(ringing.flatMap(linesOf));
  return EXIT.done;
};

/** `belfry alarms`: what rings now, what it means, and what to do. */
export const addAlarms = (program: Command): void => {
  addVerb(program, {
    usage: "alarms",
    summary: "show the alarms that ring, what each means and what to do",
    examples: [
      ["alarms", "of the local stack, which judges the alarms of a deployment by itself"],
      ["alarms --json", "the same for a program; null = they are in CloudWatch"],
    ],
    exits: ["0  shown, or none rings", "4  no stack answers"],
  }).action(ending(alarms));
};
