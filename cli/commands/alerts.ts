import { Argument, type Command, Option } from "commander";
import type { AlertView } from "../../lib/app/notify/list-alerts.ts";
import type { AlertTest } from "../../lib/app/notify/test-alert.ts";
import type { AlertsAnswer } from "../../lib/inbound/operate/answers.ts";
import { connect } from "../client.ts";
import { EXIT, type ExitCode } from "../exit-codes.ts";
import { note, pairLines, printJson, printLines, tableLines } from "../output.ts";
import { addVerb, type CommonOptions, ending, wholeNumber } from "../verb.ts";

interface AlertsOptions extends CommonOptions {
  readonly limit?: number;
}

const HEADINGS = ["AT (UTC)", "TOPIC", "KIND", "JOB", "WHY", "TOLD"];
const WHY_WIDTH = 60;

const cut = (text: string): string => (text.length > WHY_WIDTH ? `${text.slice(0, WHY_WIDTH - 1)}…` : text);

const channelText = ({ name, state, attempts, error }: AlertView["channels"][number]): string => {
  if (state === "told") return name;
  const why = error === undefined ? "" : `: ${error}`;
  return `${name} (${state === "waiting" ? `not yet, tried ${attempts} x` : "given up"}${why})`;
};

const toldText = ({ channels, waits }: AlertView): string => {
  if (channels.length > 0) return channels.map(channelText).join(", ");
  return waits ? "not yet" : "nobody";
};

const alerts = async (options: AlertsOptions): Promise<ExitCode> => {
  const { limit } = options;
  const answer = await connect(options).get<AlertsAnswer>("/v1/alerts", { limit });
  if (options.json) printJson(answer.alerts);
  else if (answer.alerts.length === 0) note("no alerts");
  else
    printLines(
      tableLines(
        HEADINGS,
        answer.alerts.map((alert) => [
          alert.at,
          alert.topic,
          alert.kind,
          alert.job ?? "-",
          cut(alert.reason),
          toldText(alert),
        ]),
      ),
    );
  return EXIT.done;
};

/** `belfry alerts`: what was told, and to whom. */
export const addAlerts = (program: Command): void => {
  addVerb(program, {
    usage: "alerts",
    summary: "show alerts, newest first, and which channels have them",
    examples: [
      ["alerts", "the last 20"],
      ["alerts --limit 100 --json", "more, for a program"],
    ],
    exits: ["0  shown, or there are none", "4  no stack answers"],
  })
    .addOption(wholeNumber("--limit <count>", "at most so many (default: 20)", [1, 1_000]))
    .action(ending(alerts));
};

interface TestOptions extends CommonOptions {
  readonly topic?: "notify" | "page";
}

const testAlerts = async (_what: string, options: TestOptions): Promise<ExitCode> => {
  const { topic = "notify" } = options;
  const answer = await connect(options).post<AlertTest>("/v1/alerts/test", { topic });
  if (options.json) printJson(answer);
  else
    printLines(
      pairLines(answer.hops.map(({ name, ok, why }) => [name, ok ? "ok" : `failed: ${why ?? "no reason"}`])),
    );
  return answer.ok ? EXIT.done : EXIT.failed;
};

/** `belfry alert test`: does an alert get through? */
export const addAlert = (program: Command): void => {
  addVerb(program, {
    usage: "alert",
    summary: "send a test alert the way of a real one, and say of each hop whether it came through",
    examples: [
      ["alert test", "to the channels of notify"],
      ["alert test --topic page", "to those that wake somebody; close the incident by hand"],
      ["alert test --stage prod", "in a deployed stage: rings a real alarm"],
    ],
    exits: ["0  every channel has it", "1  a hop failed", "4  no stack answers"],
  })
    .addArgument(new Argument("<what>", "what to do").choices(["test"]))
    .addOption(new Option("--topic <topic>", "whose channels (default: notify)").choices(["notify", "page"]))
    .action(ending(testAlerts));
};
