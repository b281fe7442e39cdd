import { execFile } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { gzipSync } from "node:zlib";
import { alternate, medianOf, ratioOf } from "../alternate.ts";
import { type Section, table } from "../section.ts";
import { writeBundles } from "./bundles.ts";

const run = promisify(execFile);

interface Import {
  readonly cpuMs: number;
  readonly wallMs: number;
}

/** A process that does nothing but import one file; what Node itself took to start is not in it. */
const PROBE = `
const [cpu, wall] = [process.cpuUsage(), performance.now()];
await import(process.argv[2]);
const wallMs = performance.now() - wall;
const { user, system } = process.cpuUsage(cpu);
console.log(JSON.stringify({ cpuMs: (user + system) / 1000, wallMs }));
process.exit(0);`;

const QUEUES = JSON.stringify({ default: "http://127.0.0.1:1/000000000000/default" });
const ENVIRONMENT = {
  PATH: process.env["PATH"],
  AWS_REGION: "us-east-1",
  AWS_ACCESS_KEY_ID: "bench",
  AWS_SECRET_ACCESS_KEY: "bench",
  BELFRY_SERVICE: "bench",
  BELFRY_STAGE: "dev",
  BELFRY_TABLE: "bench",
  BELFRY_QUEUES: QUEUES,
  BELFRY_DEAD_LETTERS: QUEUES,
  BELFRY_DISPATCH_FAILURES: "http://127.0.0.1:1/000000000000/failures",
};

/** Whoever takes longer hangs. */
const LONGEST_MS = 60_000;

const importOnce = async (folder: string, name: string): Promise<Import> => {
  const file = pathToFileURL(join(folder, `${name}.mjs`)).href;
  const { stdout } = await run(process.execPath, [join(folder, "probe.mjs"), file], {
    env: ENVIRONMENT,
    timeout: LONGEST_MS,
  });
  return JSON.parse(stdout);
};

/** Each function beside the bare clients that it uses. */
const ROWS = [
  ["dispatcher", "bare-worker"],
  ["worker-alone", "bare-worker"],
  ["worker", "bare-thread"],
  ["watchdog", "bare-worker"],
  ["dead-letters", "bare-worker"],
  ["ping", "bare-worker"],
  ["notifier", "bare-notifier"],
  ["operate", "bare-operate"],
  ["powertools", "bare-worker"],
] as const;
const LABELS: { readonly [name: string]: string } = {
  "worker-alone": "worker, before its thread",
  worker: "worker with its thread, beside bare clients and an empty thread",
  powertools: "*Powertools idempotency + batch + middy*",
};
const BUDGET = 1.2;
const BUDGETED = [
  ["dispatcher", "bare-worker", "import of the dispatcher, beside the bare clients"],
  ["worker-alone", "bare-worker", "import of the worker, beside the bare clients"],
  ["worker", "bare-thread", "start of the worker with its thread, beside bare clients and an empty thread"],
] as const;

/** Bytes and import time of every function, beside bare SDK clients bundled the same way and Powertools. */
export const imports = async (rounds: number): Promise<Section> => {
  const { folder, texts, remove } = await writeBundles();
  try {
    await writeFile(join(folder, "probe.mjs"), PROBE);
    const names = [...new Set(ROWS.flat())];
    const measured = await alternate(
      names.map((name) => ({ name, measure: () => importOnce(folder, name) })),
      rounds,
    );
    const of = (name: string, what: keyof Import): number[] =>
      (measured.get(name) ?? []).map((figures) => figures[what]);
    const text = (name: string): string => texts.get(`${name}.mjs`) ?? "";
    const ratio = (name: string, bare: string): number => ratioOf(of(name, "cpuMs"), of(bare, "cpuMs"));
    const rows = ROWS.map(([name, bare]) => [
      LABELS[name] ?? name,
      text(name).length.toLocaleString("en"),
      gzipSync(text(name)).length.toLocaleString("en"),
      text(bare).length.toLocaleString("en"),
      medianOf(of(name, "cpuMs")).toFixed(0),
      medianOf(of(bare, "cpuMs")).toFixed(0),
      ratio(name, bare).toFixed(2),
      ratioOf(of(name, "wallMs"), of(bare, "wallMs")).toFixed(2),
    ]);
    return {
      title: "Bundles and their import",
      text: [
        `Each file is imported by a process of its own, all in turn, ${rounds} rounds. Bare = the SDK clients and commands that the`,
        "function uses, bundled with the same options and nothing else. CPU counts all threads of the process; the worker's",
        "import ends when its thread has loaded a bundle of no jobs; Node itself takes most of what a thread costs.",
        "",
        table(["", "bytes", "gzip", "bare bytes", "CPU, ms", "bare, ms", "CPU ratio", "wall ratio"], rows),
      ].join("\n"),
      budgets: BUDGETED.map(([name, bare, what]) => ({
        what,
        budget: `at most ${BUDGET} x`,
        measured: `${ratio(name, bare).toFixed(2)} x`,
        met: ratio(name, bare) <= BUDGET,
      })),
    };
  } finally {
    await remove();
  }
};
