import { createInterface } from "node:readline/promises";
import { Conflict, InvalidInput } from "../../lib/core/errors.ts";
import type { ActAnswer } from "../../lib/inbound/operate/answers.ts";
import type { Operate } from "../client.ts";
import { EXIT, type ExitCode, exitCodeOfError } from "../exit-codes.ts";
import { errorFacts, note, printJson, printLines } from "../output.ts";

interface Act {
  readonly path: string;
  readonly body?: object;
  readonly json: boolean;
}

/** One answer: the run as it is now, or why it refused. Anything else that fails ends the command. */
const actOn = async (operate: Operate, runId: string, act: Act): Promise<readonly [unknown, ExitCode]> => {
  try {
    const path = `/v1/runs/${encodeURIComponent(runId)}/${act.path}`;
    const { run } = await operate.post<ActAnswer>(path, act.body ?? {});
    if (!act.json)
      printLines([
        act.path === "dismiss" ? `dismissed ${run.runId} (${run.state})` : `${run.state} ${run.runId}`,
      ]);
    return [run, EXIT.done];
  } catch (error) {
    if (!(error instanceof Conflict || error instanceof InvalidInput)) throw error;
    if (!act.json) note(`error: ${errorFacts(error).message}`);
    return [{ runId, error: errorFacts(error) }, exitCodeOfError(error)];
  }
};

/**
 * Acts on each run in turn; one that refuses does not stop the others. JSON: a list in the order of the runs, each
 * the run as it is now, or `{runId, error}`. The exit code is 2 if one is no run, else 3 if one refused.
 */
export const actOnRuns = async (operate: Operate, runIds: readonly string[], act: Act): Promise<ExitCode> => {
  const answers: unknown[] = [];
  const codes: ExitCode[] = [];
  for (const runId of runIds) {
    const [answer, code] = await actOn(operate, runId, act);
    answers.push(answer);
    codes.push(code);
  }
  if (act.json) printJson(answers);
  return codes.find((code) => code === EXIT.invalid) ?? codes.find((code) => code !== EXIT.done) ?? EXIT.done;
};

/**
 * Asks before something that cannot be undone. Without a terminal nobody can answer, so `--yes` must have been given.
 * @throws InvalidInput (`not_confirmed`) when nobody said yes; nothing has been done then
 */
export const confirm = async (question: string, yes: boolean): Promise<void> => {
  if (yes) return;
  const refused = (why: string) =>
    new InvalidInput("not_confirmed", `nothing was done: ${why}`, {
      field: "yes",
      hint: "say --yes to go ahead",
    });
  if (!process.stdin.isTTY || !process.stderr.isTTY) throw refused("there is no terminal to ask at");
  const asking = createInterface({ input: process.stdin, output: process.stderr });
  const answer = await asking.question(`${question} [y/N] `);
  asking.close();
  if (!/^y(es)?$/i.test(answer.trim())) throw refused("the answer was not yes");
};
