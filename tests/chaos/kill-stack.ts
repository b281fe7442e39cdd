/**
 * `npm run kill-stack -- [--rounds N] [--runs N]`: kills the whole embedded stack with SIGKILL while runs are queued or
 * running, starts it again, and so on; then lets it finish, and compares the records with what reached the world
 * outside. Ends with one JSON line; exit 1 when a promise is broken.
 */
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { parseArgs } from "node:util";
import { isTerminal, type RunView } from "../../lib/core/run.ts";
import { type RunningStack, runIn, startStack } from "../support/stack-process.ts";
import { type Receiver, startReceiver } from "./receiver.ts";

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "20" },
    runs: { type: "string", default: "50" },
    port: { type: "string", default: "4791" },
  },
});
const ROUNDS = Number(values.rounds);
const OPEN_RUNS = Number(values.runs);
const PORT = Number(values.port);
/** A kill that hit nobody between effect and record shows nothing. */
const LEAST_HITS = Math.floor(ROUNDS / 2);
const FINISH_MS = 180_000;

const jobText = (receiverUrl: string): string => `
import { defineJob } from "belfry";

/** One effect on the outside, then some more work before the result is recorded. */
export default defineJob({
  overlap: "allow",
  timeout: "1 minute",
  retry: { retries: 2, firstWait: "1 second", maxWait: "1 second", crashes: 100 },
  async handler({ runId, attempt, idempotencyKey }) {
    await new Promise((resolve) => setTimeout(resolve, 40));
    const query = new URLSearchParams({ run: runId, attempt: String(attempt), key: idempotencyKey("effect") });
    await fetch(${JSON.stringify(receiverUrl)} + "?" + query);
    await new Promise((resolve) => setTimeout(resolve, 500));
    return { done: true };
  },
});
`;

const makeProject = async (receiverUrl: string): Promise<string> => {
  const project = await mkdtemp(join(tmpdir(), "belfry kill-stack-"));
  await mkdir(join(project, "jobs"));
  await writeFile(join(project, "package.json"), '{ "name": "killed", "type": "module" }\n');
  await writeFile(join(project, "jobs", "effect.ts"), jobText(receiverUrl));
  return project;
};

const runOf = async (stack: RunningStack, runId: string): Promise<RunView> =>
  runIn((await stack.call(`/v1/runs/${runId}`)).body);

/** Asks for runs until so many are not over; all at once, so that most of them still wait when it returns. */
const topUp = async (stack: RunningStack, runIds: Set<string>, over: Set<string>): Promise<void> => {
  const known = [...runIds].filter((runId) => !over.has(runId));
  await Promise.all(
    known.map(async (runId) => {
      if (isTerminal((await runOf(stack, runId)).state)) over.add(runId);
    }),
  );
  const missing = OPEN_RUNS - (runIds.size - over.size);
  await Promise.all(
    Array.from({ length: missing }, async (_, n) => {
      const { status, body } = await stack.call("/v1/jobs/effect/runs", { input: { n } });
      if (status !== 202) throw new Error(`asking for a run answered ${status}: ${JSON.stringify(body)}`);
      runIds.add(runIn(body).runId);
    }),
  );
};

const finish = async (stack: RunningStack, runIds: ReadonlySet<string>): Promise<readonly RunView[]> => {
  const untilMs = Date.now() + FINISH_MS;
  const runs = new Map<string, RunView>();
  while (Date.now() < untilMs) {
    const open = [...runIds].filter((runId) => !isTerminal(runs.get(runId)?.state));
    if (open.length === 0) break;
    for (const runId of open) runs.set(runId, await runOf(stack, runId));
    await pause(500);
  }
  return [...runs.values()];
};

interface Report {
  readonly rounds: number;
  readonly runs: number;
  readonly succeeded: number;
  readonly notOver: number;
  readonly keyedEffects: number;
  readonly unkeyedEffects: number;
  /** Kills that hit a handler between its effect and its record. */
  readonly killsThatHit: number;
  /** Effects beyond the first of a run, each named. */
  readonly repeats: readonly string[];
  /** Repeats whose earlier attempt is not recorded as lost: there may be none. */
  readonly unexplained: readonly string[];
}

const reportOn = (runs: readonly RunView[], receiver: Receiver, killsAtMs: readonly number[]): Report => {
  const byRun = Map.groupBy(receiver.effects, ({ runId }) => runId);
  const repeats: string[] = [];
  const unexplained: string[] = [];
  const hits = new Set<number>();
  for (const run of runs) {
    const effects = byRun.get(run.runId) ?? [];
    for (const { attempt, atMs } of effects.slice(0, -1)) {
      const name = `${run.runId} attempt ${attempt}`;
      repeats.push(name);
      const killedAtMs = killsAtMs.find((killMs) => killMs >= atMs);
      // The record keeps its last five attempts; a run that was killed more often than that is counted there.
      const recorded = run.attempts.find(({ n }) => n === attempt);
      const lost = recorded === undefined ? run.attempts.length >= 5 : recorded.outcome === "lost";
      if (killedAtMs === undefined || !lost) unexplained.push(name);
      else hits.add(killedAtMs);
    }
    if (effects.length === 0) unexplained.push(`${run.runId} is ${run.state} without an effect`);
  }
  return {
    rounds: ROUNDS,
    runs: runs.length,
    succeeded: runs.filter(({ state }) => state === "succeeded").length,
    notOver: runs.filter(({ state }) => !isTerminal(state)).length,
    keyedEffects: receiver.keyedCount(),
    unkeyedEffects: receiver.effects.length,
    killsThatHit: hits.size,
    repeats,
    unexplained,
  };
};

const holds = (report: Report): boolean =>
  report.succeeded === report.runs &&
  report.notOver === 0 &&
  report.keyedEffects === report.runs &&
  report.unkeyedEffects === report.runs + report.repeats.length &&
  report.unexplained.length === 0 &&
  report.killsThatHit >= LEAST_HITS;

const receiver = await startReceiver();
const project = await makeProject(receiver.url);
const runIds = new Set<string>();
const over = new Set<string>();
const killsAtMs: number[] = [];
for (let round = 1; round <= ROUNDS; round++) {
  const stack = await startStack(project, PORT);
  await topUp(stack, runIds, over);
  // Some effects into this round, while several handlers are between effect and record.
  await receiver.untilCount(receiver.effects.length + 1 + (round % 7));
  await pause((round % 5) * 30);
  killsAtMs.push(Date.now());
  await stack.killAll();
  console.error(`round ${round}: killed with ${runIds.size - over.size} runs open or just over`);
}
const last = await startStack(project, PORT);
const report = reportOn(await finish(last, runIds), receiver, killsAtMs);
await last.stop();
receiver.close();
await rm(project, { recursive: true, force: true });
console.log(JSON.stringify(report));
process.exitCode = holds(report) ? 0 : 1;
