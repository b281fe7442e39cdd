import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { join, resolve } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { buildProject, formatFaults } from "../../infra/build/build.ts";
import { systemClock } from "../../lib/adapters/system/system.ts";
import { InvalidInput } from "../../lib/core/errors.ts";
import type { JobDefinition, Manifest } from "../../lib/core/jobs/job.ts";
import { SECOND_MS, shortIsoOf } from "../../lib/core/time.ts";
import type { AttemptEvent, Journal } from "../../lib/ports/journal.ts";
import type { Handlers } from "../../lib/simulation/attempts.ts";
import { absentHandlers, calledHandlers } from "../../lib/simulation/called-handlers.ts";
import { reportOf, type SimulationReport } from "../../lib/simulation/report.ts";
import { playStory } from "../../lib/simulation/story.ts";
import { EXIT } from "../exit-codes.ts";
import { spanText } from "../times.ts";
import { chooseJobs } from "./choice.ts";
import { handlersOf } from "./handlers.ts";
import { checkSlots, type Range, readRange } from "./range.ts";
import { isolate } from "./stores.ts";

export interface SimulateOptions {
  readonly from: string;
  /** Not included. */
  readonly to: string;
  /** Virtual seconds in a real one; none = as fast as it goes. */
  readonly speed?: number;
  readonly faults?: number;
  readonly dry: boolean;
  readonly lastsMs?: number;
  readonly limitMs: number;
  readonly realDate: boolean;
  readonly stage?: string;
  readonly data?: string;
  /** One line for people. */
  readonly note: (text: string) => void;
}

/** What `--json` prints. */
export interface SimulationAnswer extends SimulationReport {
  readonly from: string;
  readonly to: string;
  readonly seed: number | null;
  readonly handlers: "called" | "not called";
  readonly tookMs: number;
}

/** Beside the project's packages, so that its jobs find them; gone afterwards. */
const temporaryFolder = (data: string | undefined): { readonly path: string; remove(): void } => {
  const parent = resolve(data ?? process.env["BELFRY_DATA"] ?? ".belfry");
  const made = mkdirSync(parent, { recursive: true, mode: 0o700 });
  const path = mkdtempSync(join(parent, "simulate-"));
  return { path, remove: () => rmSync(made ?? path, { recursive: true, force: true }) };
};

/** A command that is interrupted leaves nothing behind either. */
const endWith = (remove: () => void): { dispose(): void } => {
  const interrupt = (): void => process.exit(EXIT.interrupted);
  process.on("exit", remove);
  process.on("SIGINT", interrupt);
  process.on("SIGTERM", interrupt);
  return {
    dispose: () => {
      process.off("exit", remove);
      process.off("SIGINT", interrupt);
      process.off("SIGTERM", interrupt);
    },
  };
};

const build = async (outDir: string) => {
  const answer = await buildProject({ projectDir: process.cwd(), outDir });
  if (answer.ok) return answer;
  throw new InvalidInput("invalid_project", `the project has faults:\n${formatFaults(answer.faults)}`);
};

const attemptLine = (event: AttemptEvent): string => {
  const { endedAtMs, runId, state, attempt, startedAtMs, error, reason } = event;
  const which = attempt > 1 ? ` (attempt ${attempt})` : "";
  const why = error === undefined ? reason : `${error.name}: ${error.message}`;
  const after = spanText(endedAtMs - startedAtMs);
  return `${shortIsoOf(endedAtMs)}  ${runId}  ${state}${which} after ${after}${why === undefined ? "" : `  ${why}`}`;
};

/** Who watches the clock go wants to see what happens, too. */
const tellingJournal = (note: (text: string) => void): Journal => ({
  attempt: (event) => note(attemptLine(event)),
  notice: () => undefined,
  handlerLine: (level, message) => note(`  ${level}: ${message}`),
});

/** Shorter waits than that are made up for later. */
const SHORTEST_WAIT_MS = 5;

const paceOf = (speed: number, fromMs: number) => {
  const beganAtMs = systemClock.nowMs();
  return (atMs: number): Promise<void> | undefined => {
    const waitMs = beganAtMs + (atMs - fromMs) / speed - systemClock.nowMs();
    return waitMs < SHORTEST_WAIT_MS ? undefined : pause(waitMs);
  };
};

interface Prepared {
  readonly manifest: Manifest;
  readonly jobs: readonly JobDefinition[];
  readonly range: Range;
}

const prepare = (manifest: Manifest, names: readonly string[], options: SimulateOptions): Prepared => {
  const jobs = chooseJobs(manifest, names, options.stage);
  const [only, ...others] = jobs;
  const zone = names.length > 0 && others.length === 0 ? (only?.timezone ?? "UTC") : "UTC";
  const range = readRange(options.from, options.to, zone);
  checkSlots(jobs, range);
  return { manifest, jobs, range };
};

/** An attempt of a handler that is not called, where nobody says how long it lasts. */
const DRY_LASTS_MS = SECOND_MS;

const play = async ({ manifest, jobs, range }: Prepared, handlers: Handlers, options: SimulateOptions) => {
  const { speed, faults, note } = options;
  const startedAtMs = systemClock.nowMs();
  const story = await playStory({
    manifest: { ...manifest, jobs },
    ...range,
    handlers,
    ...(faults === undefined ? {} : { faultSeed: faults }),
    ...(speed === undefined ? {} : { pace: paceOf(speed, range.fromMs), journal: tellingJournal(note) }),
  });
  const tookMs = systemClock.nowMs() - startedAtMs;
  return { ...(await reportOf(story, range)), tookMs };
};

/**
 * Plays every slot of the chosen jobs on a virtual clock.
 * @throws InvalidInput for faults of the project's files, and for a choice or a range that makes no sense
 */
export const simulate = async (
  names: readonly string[],
  options: SimulateOptions,
): Promise<SimulationAnswer> => {
  // Before anything is built, for what no project can make right.
  readRange(options.from, options.to, "UTC");
  const folder = temporaryFolder(options.data);
  const ending = endWith(folder.remove);
  let stores: Stores | undefined;
  try {
    stores = await isolate(folder.path, options.note);
    const { manifest, jobsFile } = await build(join(folder.path, "build"));
    const prepared = prepare(manifest, names, options);
    const answer = await (options.dry
      ? play(prepared, absentHandlers(options.lastsMs ?? DRY_LASTS_MS), options)
      : call(prepared, jobsFile, stores, options));
    const { fromMs, toMs } = prepared.range;
    return {
      from: shortIsoOf(fromMs),
      to: shortIsoOf(toMs),
      seed: options.faults ?? null,
      handlers: options.dry ? "not called" : "called",
      ...answer,
    };
  } finally {
    await stores?.end();
    folder.remove();
    ending.dispose();
  }
};

type Stores = Awaited<ReturnType<typeof isolate>>;

const call = async (prepared: Prepared, jobsFile: string, stores: Stores, options: SimulateOptions) => {
  const { limitMs, realDate, lastsMs, note } = options;
  note("handlers are really called: what they send is sent, but for AWS, which is this machine's emulators");
  await stores.begin();
  const manifest = { ...prepared.manifest, jobs: prepared.jobs };
  const { attempts, close } = handlersOf({ manifest, jobsFile, limitMs, realDate, note });
  const timing = lastsMs === undefined ? {} : { lastsMs };
  try {
    return await play(prepared, calledHandlers({ attempts, clock: systemClock, ...timing }), options);
  } finally {
    await close();
  }
};
