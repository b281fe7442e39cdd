import { execFile } from "node:child_process";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { freePorts } from "../../cli/dev/network-port.ts";
import { startStack } from "../../tests/support/stack-process.ts";
import { alternate, medianOf } from "../alternate.ts";
import { type Section, table } from "../section.ts";

const run = promisify(execFile);
const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const BIN = join(ROOT, "cli/bin.js");

const JOB = `import { defineJob } from "belfry";
export default defineJob({ handler: async () => ({ said: "hello" }) });
`;

const secondsOf = async (act: () => Promise<unknown>): Promise<number> => {
  const begun = performance.now();
  await act();
  return (performance.now() - begun) / 1_000;
};

/** A project of one job, in which the embedded stack is started and stopped as often as asked. */
const makeProject = async () => {
  const folder = await mkdtemp(join(tmpdir(), "belfry-bench-"));
  await mkdir(join(folder, "jobs"));
  await writeFile(join(folder, "package.json"), '{ "type": "module", "private": true }\n');
  await writeFile(join(folder, "jobs", "hello.ts"), JOB);
  return { folder, remove: () => rm(folder, { recursive: true, force: true }) };
};

const BUDGET_S = { start: 3, run: 1 } as const;

const secondsText = (seconds: number): string => `${seconds.toFixed(2)} s`;

/** From the command to a stack that is ready, and from a command to a recorded success; beside them, npx alone. */
export const devStart = async (rounds: number): Promise<Section> => {
  const { folder, remove } = await makeProject();
  const [port = 0] = await freePorts(1);
  const starts: number[] = [];
  try {
    for (let round = 0; round < Math.min(rounds, 5); round++) {
      let stop: () => Promise<void> = async () => undefined;
      starts.push(
        await secondsOf(async () => {
          ({ stop } = await startStack(folder, port));
        }),
      );
      await stop();
    }
    const stack = await startStack(folder, port);
    const command = (...args: readonly string[]) => run(process.execPath, [BIN, ...args], { cwd: folder });
    const sides = [
      { name: "run", measure: () => secondsOf(() => command("run", "hello", "--wait")) },
      { name: "version", measure: () => secondsOf(() => command("--version")) },
      { name: "npx", measure: () => secondsOf(() => run("npx", ["belfry", "--version"], { cwd: ROOT })) },
    ];
    const measured = await alternate(sides, rounds).finally(() => stack.stop());
    const of = (name: string): number => medianOf(measured.get(name) ?? []);
    const start = medianOf(starts);
    const npx = of("npx") - of("version");
    return {
      title: "The embedded stack",
      text: [
        `Medians of ${starts.length} starts and ${rounds} runs; wall time, so a busy machine makes them longer.`,
        "",
        table(
          ["", "time"],
          [
            ["`dev`, from the command to ready", secondsText(start)],
            ["`run hello --wait`, from the command to its answer", secondsText(of("run"))],
            ["the command line alone (`--version`)", secondsText(of("version"))],
            ["what npx adds", secondsText(npx)],
          ],
        ),
      ].join("\n"),
      budgets: [
        {
          what: "embedded stack ready",
          budget: `under ${BUDGET_S.start} s`,
          measured: secondsText(start),
          met: start < BUDGET_S.start,
        },
        {
          what: "manual run, from command to recorded success, without npx",
          budget: `under ${BUDGET_S.run} s`,
          measured: secondsText(of("run")),
          met: of("run") < BUDGET_S.run,
        },
      ],
    };
  } finally {
    await remove();
  }
};
