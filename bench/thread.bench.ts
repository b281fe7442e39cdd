/**
 * What it costs to run handlers apart from the process that keeps their lease: in a worker thread, or in a child
 * process. Run: `node bench/thread.bench.ts`. Linux only, since it reads /proc.
 *
 * Each figure comes from a process of its own that loads what the worker Lambda's main thread does (the DynamoDB and
 * SQS clients, bundled) and then the jobs of this project. `memory` is what a container is charged with: private
 * pages of all processes, and once the pages of files they share.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { fileURLToPath, pathToFileURL } from "node:url";
import * as esbuild from "esbuild";
import { buildProject } from "../infra/build/build.ts";
import { makeThreadAttempts } from "../lib/adapters/thread/thread-attempts.ts";
import { QUIET_SERVICES } from "../tests/support/quiet-services.ts";

const ROUNDS = Number(process.env["ROUNDS"] ?? 9);
const SELF = fileURLToPath(import.meta.url);
const KINDS = ["none", "thread", "process"] as const;
type Kind = (typeof KINDS)[number];

interface Figures {
  readonly memoryMb: number;
  readonly readyMs: number;
  readonly firstCallMs: number;
  readonly warmCallMs: number;
}

const rollup = (pid: number | string): { readonly privateMb: number; readonly sharedMb: number } => {
  const text = readFileSync(`/proc/${pid}/smaps_rollup`, "utf8");
  const sum = (...names: readonly string[]) =>
    names.reduce(
      (total, name) => total + Number(new RegExp(`^${name}:\\s+(\\d+)`, "m").exec(text)?.[1] ?? 0),
      0,
    ) / 1024;
  return { privateMb: sum("Private_Clean", "Private_Dirty"), sharedMb: sum("Shared_Clean", "Shared_Dirty") };
};
/** Nothing, for a process that has just ended. */
const rollupIfThere = (pid: number | string): ReturnType<typeof rollup> => {
  try {
    return rollup(pid);
  } catch {
    return { privateMb: 0, sharedMb: 0 };
  }
};
const childrenOf = (pid: number): readonly string[] =>
  readdirSync(`/proc/${pid}/task`).flatMap((task) =>
    readFileSync(`/proc/${pid}/task/${task}/children`, "utf8").split(" ").filter(Boolean),
  );
const chargedMb = (): number => {
  const all = [process.pid, ...childrenOf(process.pid)].map(rollupIfThere);
  const shared = Math.max(...all.map(({ sharedMb }) => sharedMb));
  return all.reduce((total, { privateMb }) => total + privateMb, shared);
};

const request = {
  job: "nothing",
  runId: "r",
  slotMs: 0,
  attempt: 1,
  trigger: "manual",
  input: {},
  timeoutMs: 60_000,
};
const WARM_CALLS = 200;

const measure = async (
  kind: Kind,
  memoryMb: number,
  clientsFile: string,
  jobsFile: string,
): Promise<Figures> => {
  const { dynamo, sqs } = await import(pathToFileURL(clientsFile).href);
  if (!dynamo || !sqs) throw new Error("the clients are not there");
  const begun = performance.now();
  const call = await callerOf(kind, memoryMb, jobsFile);
  const ready = performance.now();
  await call();
  const first = performance.now();
  for (let n = 0; n < WARM_CALLS; n++) await call();
  const warm = performance.now();
  return {
    memoryMb: chargedMb(),
    readyMs: ready - begun,
    firstCallMs: first - ready,
    warmCallMs: (warm - first) / WARM_CALLS,
  };
};

const callerOf = async (kind: Kind, memoryMb: number, jobsFile: string): Promise<() => Promise<unknown>> => {
  if (kind === "none") {
    const { default: jobs } = await import(pathToFileURL(jobsFile).href);
    return async () => jobs.nothing.options.handler({});
  }
  const attempts = makeThreadAttempts({
    jobsFile,
    memoryMb,
    isolation: kind,
    clock: { nowMs: () => Date.now() },
    timers: { after: (ms, callback) => ({ cancel: clearTimeout.bind(undefined, setTimeout(callback, ms)) }) },
  });
  await attempts.ready();
  return () => attempts.start(request, QUIET_SERVICES).ended;
};

/** How handlers that use up the memory end, and how much the container is charged with at most. */
const HUNGRY: { readonly [name: string]: string } = {
  "list of large arrays": "const kept = []; for (;;) kept.push(new Array(1e6).fill('x'))",
  "list of small objects": "const kept = []; for (let i = 0; ; i++) kept.push({ i, text: 'text ' + i })",
  "list of long texts": "const kept = []; for (let i = 0; ; i++) kept.push(('x' + i).repeat(1000).slice(1))",
  "list of short arrays": "const kept = []; for (;;) kept.push(new Array(1000).fill({}))",
  "one large JSON text": "JSON.parse('[' + '{\"a\":1},'.repeat(3e7) + '1]')",
  "one large array": "new Array(1e9).fill(1)",
};
const HANG_MS = 30_000;

const feed = async (
  kind: "thread" | "process",
  memoryMb: number,
  jobsFile: string,
  job: string,
): Promise<void> => {
  const attempts = makeThreadAttempts({
    jobsFile,
    memoryMb,
    isolation: kind,
    onOutput: () => undefined,
    clock: { nowMs: () => Date.now() },
    timers: { after: (ms, callback) => ({ cancel: clearTimeout.bind(undefined, setTimeout(callback, ms)) }) },
  });
  await attempts.ready();
  let peak = 0;
  const look = setInterval(() => {
    peak = Math.max(peak, chargedMb());
  }, 20);
  const end = await attempts.start({ ...request, job, timeoutMs: 20_000 }, QUIET_SERVICES).ended;
  clearInterval(look);
  process.stdout.write(JSON.stringify({ end: end.kind, peakMb: Math.round(peak) }));
  process.exit(0);
};

const median = (values: readonly number[]): number =>
  [...values].sort((a, b) => a - b)[values.length >> 1] ?? 0;

const child = (args: readonly string[], timeout: number): { readonly text: string; readonly how: string } => {
  const { stdout, status, signal } = spawnSync(process.execPath, [SELF, ...args], {
    encoding: "utf8",
    timeout,
    killSignal: "SIGKILL",
    stdio: ["ignore", "pipe", "ignore"],
  });
  if (status === 0) return { text: stdout, how: "ended" };
  return { text: "", how: signal === "SIGKILL" ? "never ends" : "takes its process along" };
};

const compare = (clientsFile: string, jobsFile: string): readonly string[] => {
  const rows = [
    "| memory | handlers run in | memory, MB | ready, ms | first call, ms | warm call, ms |",
    "|---|---|---|---|---|---|",
  ];
  for (const memoryMb of [128, 256]) {
    // Interleaved, so that a busy moment hits all alike.
    const runs = Array.from({ length: ROUNDS }, () =>
      KINDS.map(
        (kind): Figures =>
          JSON.parse(child(["measure", kind, String(memoryMb), clientsFile, jobsFile], 60_000).text),
      ),
    );
    KINDS.forEach((kind, i) => {
      const of = (name: keyof Figures, digits = 0) =>
        median(runs.flatMap((round) => round[i]?.[name] ?? [])).toFixed(digits);
      const where = kind === "none" ? "the main thread" : `a ${kind}`;
      rows.push(
        `| ${memoryMb} MB | ${where} | ${of("memoryMb")} | ${of("readyMs")} | ${of("firstCallMs", 1)} | ${of("warmCallMs", 2)} |`,
      );
    });
  }
  return rows;
};

const starve = (jobsFile: string): readonly string[] => {
  const rows = ["| memory | handler keeps | in a thread | in a process |", "|---|---|---|---|"];
  for (const memoryMb of [128, 256])
    for (const job of Object.keys(HUNGRY)) {
      const cells = ["thread", "process"].map((kind) => {
        const { text, how } = child(["feed", kind, String(memoryMb), jobsFile, job], HANG_MS);
        if (text === "") return `**${how}**`;
        const { end, peakMb }: { readonly end: string; readonly peakMb: number } = JSON.parse(text);
        return `${end}, at most ${peakMb} MB`;
      });
      rows.push(`| ${memoryMb} MB | ${job} | ${cells.join(" | ")} |`);
    }
  return rows;
};

const main = async (): Promise<void> => {
  const folder = mkdtempSync(join(tmpdir(), "belfry-bench-"));
  const root = fileURLToPath(new URL("..", import.meta.url));
  const options: esbuild.BuildOptions = {
    bundle: true,
    platform: "node",
    format: "esm",
    mainFields: ["module", "main"],
  };
  const clientsFile = join(folder, "clients.mjs");
  const clients = `import { DynamoDBClient } from "@aws-sdk/client-dynamodb"; import { SQSClient } from "@aws-sdk/client-sqs";
    export const dynamo = new DynamoDBClient({ region: "eu-west-1" }); export const sqs = new SQSClient({ region: "eu-west-1" });`;
  await esbuild.build({ ...options, stdin: { contents: clients, resolveDir: root }, outfile: clientsFile });
  const built = await buildProject({ projectDir: root, outDir: join(folder, "build"), packages: "bundle" });
  if (!built.ok) throw new Error("the project's jobs have faults");
  const jobs = `import jobs from ${JSON.stringify(built.jobsFile)};
    const define = (handler) => ({ [Symbol.for("belfry.job")]: 1, options: { handler } });
    export default { ...jobs, nothing: define(() => undefined),
      ${Object.entries(HUNGRY)
        .map(([name, code]) => `${JSON.stringify(name)}: define(() => { ${code} })`)
        .join(",")} };`;
  const jobsFile = join(folder, "jobs.mjs");
  await esbuild.build({ ...options, stdin: { contents: jobs, resolveDir: root }, outfile: jobsFile });
  const machine = `Node ${process.version}, ${cpus().length} cores (${cpus()[0]?.model.trim()}), ${new Date().toISOString().slice(0, 10)}, median of ${ROUNDS}`;
  process.stdout.write(
    [machine, "", ...compare(clientsFile, jobsFile), "", ...starve(jobsFile), ""].join("\n"),
  );
  rmSync(folder, { recursive: true });
};

const [task, kind, memory, ...files] = process.argv.slice(2);
if (task === "measure") {
  const found = KINDS.find((one) => one === kind) ?? "none";
  process.stdout.write(JSON.stringify(await measure(found, Number(memory), files[0] ?? "", files[1] ?? "")));
  process.exit(0);
} else if (task === "feed")
  await feed(kind === "process" ? "process" : "thread", Number(memory), files[0] ?? "", files[1] ?? "");
else await main();
