import { setTimeout as pause } from "node:timers/promises";
import { freePorts } from "../../cli/dev/network-port.ts";
import { alarmName } from "../../lib/core/alarms/alarm.ts";
import { runIdOf, slotKeyOf } from "../../lib/core/identity.ts";
import { EMBEDDED_ALARM_MINUTE_MS } from "../../lib/core/settings.ts";
import { SECOND_MS } from "../../lib/core/time.ts";
import { type RunningStack, runIn, startStack } from "../support/stack-process.ts";
import { type JobFiles, makeProject } from "./project.ts";
import { type Receiver, startReceiver } from "./receiver.ts";
import { type Services, startServices } from "./services.ts";
import { makeWatch, type Watch } from "./watch.ts";

/** So long at least from the moment when jobs are written to their first slot; a busy machine needs longer. */
const SHORTEST_LEAD_MS = 5 * SECOND_MS;
const LONGEST_LEAD_MS = 120 * SECOND_MS;
const LONGEST_RELOAD_MS = 90 * SECOND_MS;
/** What the scheduler could not dispatch the watchdog has by then: two looks, and a pass that comes late. */
const LONGEST_DISPATCH_MS = 45 * SECOND_MS;
/** Of the time before the first slot, to make ready what has to fail. */
const MARGIN_MS = 2 * SECOND_MS;

/** The run of a job's slot. */
export const runOf = (job: string, slotMs: number): string =>
  runIdOf({ subject: job, slotKey: slotKeyOf(slotMs) });

/** An alarm of the embedded stack by its full name. */
export const alarm = (key: string): string => alarmName({ service: "belfry", stage: "dev" }, key);

/** What each message of a page is: the channels of `notify` hear it too. */
export const paged = (kind: string, about: string): readonly string[] =>
  ["chat", "pager"].map((channel) => `${channel} ${kind} page ${about}`);

/** The beginning of an alarm's next minute, which is at least so far away. */
const nextMinuteMs = (afterMs: number): number =>
  Math.ceil((Date.now() + afterMs) / EMBEDDED_ALARM_MINUTE_MS) * EMBEDDED_ALARM_MINUTE_MS;

export const untilMs = (atMs: number): Promise<void> => pause(Math.max(0, atMs - Date.now()));

/** One running stack, with all that it works upon and that the drill breaks. */
export interface Stage {
  readonly receiver: Receiver;
  readonly services: Services;
  readonly watch: Watch;
  /** All that the stack has printed so far. */
  lines(): readonly string[];
  /** Writes the jobs that are made for a first slot, and waits until they are loaded, in time; answers the slot. */
  load(jobs: (slotMs: number) => JobFiles): Promise<number>;
  /** Runs the job by hand; answers the run's id. */
  run(job: string, input: object): Promise<string>;
  /** How the run ended, once it has; "not there" where nobody makes it. */
  endOf(runId: string): Promise<string>;
  /** Kills the stack and starts it again. @param environment of the new one, beside this process's own */
  restart(environment: { readonly [name: string]: string }): Promise<void>;
  close(): Promise<void>;
}

/** @param roomAwayMs so long, from now on, the second chat takes nothing */
export const openStage = async (roomAwayMs: number): Promise<Stage> => {
  const receiver = await startReceiver({ roomAwayMs });
  const services = await startServices();
  const project = await makeProject(receiver);
  const start = async (environment: { readonly [name: string]: string }): Promise<RunningStack> => {
    const [port = 0] = await freePorts(1);
    return startStack(project.folder, port, {
      ...environment,
      AWS_ENDPOINT_URL_DYNAMODB: services.endpoints.dynamodb,
      AWS_ENDPOINT_URL_SQS: services.endpoints.sqs,
    });
  };
  const startedAtMs = Date.now();
  let stack = await start({});
  const earlier: string[] = [];
  const tookMs = Date.now() - startedAtMs;
  // Whatever ends the drill, no stack stays.
  process.on("exit", () => stack.process.kill("SIGKILL"));

  /** Answers whether the stack said that it has loaded these jobs. */
  const loaded = async (jobs: readonly string[], fromLine: number): Promise<boolean> => {
    const endMs = Date.now() + LONGEST_RELOAD_MS;
    while (Date.now() < endMs) {
      const last = stack.lines
        .slice(fromLine)
        .filter((line) => /^reloaded: |not reloaded/.test(line))
        .at(-1);
      if (last?.includes("not reloaded")) throw new Error(stack.lines.slice(fromLine).join("\n"));
      const names = last?.replace("reloaded: ", "").split(", ") ?? [];
      if (jobs.every((job) => names.includes(job))) return true;
      await pause(50);
    }
    return false;
  };

  return {
    receiver,
    services,
    watch: makeWatch(receiver),
    lines: () => [...earlier, ...stack.lines],
    load: async (jobs) => {
      for (let leadMs = SHORTEST_LEAD_MS + tookMs; leadMs <= LONGEST_LEAD_MS; leadMs *= 2) {
        const slotMs = nextMinuteMs(leadMs);
        const files = jobs(slotMs);
        const fromLine = stack.lines.length;
        await project.write(files);
        if ((await loaded(Object.keys(files), fromLine)) && Date.now() + MARGIN_MS < slotMs) return slotMs;
      }
      throw new Error(`the jobs are not loaded in time:\n${stack.lines.join("\n")}`);
    },
    run: async (job, input) => {
      const { body, status } = await stack.call(`/v1/jobs/${job}/runs`, { input });
      if (status !== 202) throw new Error(`${status} ${JSON.stringify(body)}`);
      return runIn(body).runId;
    },
    endOf: async (runId) => {
      const giveUpAtMs = Date.now() + LONGEST_DISPATCH_MS;
      for (;;) {
        const { body, status } = await stack.call(`/v1/runs/${runId}?waitMs=25000`);
        if (status !== 404) return runIn(body).state;
        if (Date.now() > giveUpAtMs) return "not there";
        await pause(500);
      }
    },
    restart: async (environment) => {
      await stack.killAll();
      earlier.push(...stack.lines);
      stack = await start(environment);
    },
    close: async () => {
      await stack.killAll();
      receiver.close();
      await services.close();
      await project.remove();
    },
  };
};

/** Undefined = they have; else how they ended. */
export const allSucceeded = async (stage: Stage, runs: readonly string[]): Promise<string | undefined> => {
  const states = await Promise.all(runs.map((run) => stage.endOf(run)));
  return states.every((state) => state === "succeeded") ? undefined : `the runs are ${states.join(" and ")}`;
};
