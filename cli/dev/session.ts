import { randomBytes } from "node:crypto";
import { getCompileCacheDir } from "node:module";
import { join } from "node:path";
import { systemClock as clock, systemTimers as timers } from "../../lib/adapters/system/system.ts";
import { EMBEDDED_ALARM_MINUTE_MS } from "../../lib/core/settings.ts";
import { isoOf } from "../../lib/core/time.ts";
import { packageVersion } from "../package-version.ts";
import { alarmMessage } from "./alarm-event.ts";
import { type AlarmWatch, startAlarmWatch } from "./alarm-watch.ts";
import { bannerLines } from "./banner.ts";
import { type ChildLog, openChildLog } from "./child-log.ts";
import type { DataFolder } from "./data-folder.ts";
import { adoptEnvironment, childEnvironment } from "./environment.ts";
import type { takePort } from "./network-port.ts";
import { findStores, Processes } from "./processes.ts";
import { type ProjectBuild, projectBuilder } from "./project-build.ts";
import { Reloader } from "./reloader.ts";
import { lineForPeople } from "./run-lines.ts";
import type { DevSettings } from "./settings.ts";
import type { StopSignals } from "./stop-signals.ts";

const STOPPED = 0;
const FAILED = 1;
const INVALID = 2;
/** The shell's number for Ctrl-C. */
const INTERRUPTED = 130;

/** Over a running attempt's own timeout: its record and its message still have to be written. */
const STOP_MARGIN_MS = 15_000;
/** For the emulators to close their files once nothing else runs. */
const END_GRACE_MS = 3_000;

export interface SessionOptions {
  readonly settings: DevSettings;
  readonly folder: DataFolder;
  readonly socket: Awaited<ReturnType<typeof takePort>>;
  readonly signals: StopSignals;
  readonly startedAtMs: number;
  readonly say: (line: string) => void;
  readonly complain: (line: string) => void;
}

/** Children keep their compiled code where the launcher keeps ours: less than half the time to load the SDK. */
const compileCache = (): { readonly NODE_COMPILE_CACHE?: string } => {
  const folder = getCompileCacheDir();
  return folder === undefined ? {} : { NODE_COMPILE_CACHE: folder };
};

/** A log file for each child, what people see of it, and what the alarms are judged by. */
const childLogs = (folder: string, say: (line: string) => void, alarms: AlarmWatch) => {
  const logs = new Map<string, ChildLog>();
  const logOf = (name: string): ChildLog => {
    const open = logs.get(name);
    if (open !== undefined) return open;
    const opened = openChildLog(join(folder, "logs"), name, (line) => {
      alarms.line(line);
      const text = lineForPeople(name, line);
      if (text !== undefined) say(text);
    });
    logs.set(name, opened);
    return opened;
  };
  return {
    output: (name: string) => (chunk: Buffer) => logOf(name).write(chunk),
    close: () => {
      for (const log of logs.values()) log.close();
    },
  };
};

/** Messages that find nobody to take them wait, as SNS would keep them. */
const startAlarms = (
  say: (line: string) => void,
  hand: (order: Parameters<Processes["tellAlarms"]>[0]) => boolean,
): AlarmWatch => {
  let waiting: readonly string[] = [];
  return startAlarmWatch({
    minuteMs: EMBEDDED_ALARM_MINUTE_MS,
    clock,
    timers,
    say,
    tell: (ringing, changes) => {
      const told = changes.filter(({ alarm }) => !alarm.pastNotifier);
      const messages = [...waiting, ...told.map(alarmMessage)];
      waiting = hand({ kind: "alarms", ringing, messages }) ? [] : messages;
    },
  });
};

const showStart = (options: SessionOptions, build: ProjectBuild): void => {
  const { complain, folder, say, settings, socket, startedAtMs } = options;
  const nowMs = clock.nowMs();
  for (const warning of build.warnings) complain(`warning: ${warning}`);
  if (!settings.strikes) complain("no schedule strikes here: BELFRY_DEV_SCHEDULER is off");
  const lines = bannerLines({
    version: packageVersion(),
    manifest: build.manifest,
    port: socket.port,
    pingSecret: folder.pingSecret,
    folder: folder.path,
    isTemporary: settings.folder === undefined,
    isStandard: settings.folder === join(settings.projectDir, ".belfry"),
    attached: settings.attached,
    nowMs,
    tookMs: nowMs - startedAtMs,
  });
  for (const line of lines) say(line);
};

/** Lets running work finish, but not for ever and not against the person's will. */
const stop = async (
  { say, signals }: SessionOptions,
  processes: Processes,
  reloader: Reloader | undefined,
  build: ProjectBuild,
): Promise<number> => {
  say("stopping: running work may finish; Ctrl-C again ends it now");
  const longestMs = Math.max(0, ...build.manifest.jobs.map(({ timeoutMs }) => timeoutMs));
  const bound = Promise.withResolvers<number>();
  const timer = timers.after(longestMs + STOP_MARGIN_MS, () => bound.resolve(FAILED));
  const finish = async (): Promise<number> => {
    await reloader?.close();
    await processes.stop();
    return STOPPED;
  };
  const code = await Promise.race([finish(), bound.promise, signals.askedAgain.then(() => INTERRUPTED)]);
  timer.cancel();
  if (code === STOPPED) say("stopped");
  else {
    say("ending it now; what was running is taken up at the next start");
    await processes.end(END_GRACE_MS);
  }
  return code;
};

interface Served {
  readonly processes: Processes;
  readonly alarms: AlarmWatch;
  readonly build: ProjectBuild;
  readonly rebuild: ReturnType<typeof projectBuilder>;
  readonly key: string;
}

/** Runs the built project until somebody wants it to stop. */
const serve = async (options: SessionOptions, served: Served): Promise<number> => {
  const { alarms, build, key, processes, rebuild } = served;
  const { complain, folder, say, settings, signals, socket } = options;
  await Promise.race([processes.begin(build, Object.keys(build.manifest.pools)), signals.asked]);
  if (signals.isAsked()) return stop(options, processes, undefined, build);
  alarms.use(build.manifest);
  folder.writeFacts({ port: socket.port, key, pid: process.pid, startedAt: isoOf(clock.nowMs()) });
  const reloader = new Reloader({
    projectDir: settings.projectDir,
    build: rebuild,
    processes,
    current: build,
    reloaded: ({ manifest }) => alarms.use(manifest),
    timers,
    say,
    complain,
  });
  // It invites to edit files: what is edited from then on is noticed.
  showStart(options, build);
  await signals.asked;
  return stop(options, processes, reloader, build);
};

/**
 * From a taken port and folder to the end of the stack; answers the exit code.
 * @throws Unavailable when a process of the stack cannot begin; none is left then.
 */
export const runSession = async (options: SessionOptions): Promise<number> => {
  const { complain, folder, say, settings, socket } = options;
  const key = randomBytes(32).toString("base64url");
  const stores = await findStores(settings.attached);
  const environment = {
    ...childEnvironment(process.env, stores.endpoints, settings.attached.dynamodb === undefined),
    ...compileCache(),
  };
  adoptEnvironment(environment);
  const rebuild = projectBuilder(settings.projectDir, folder.path);
  const building = rebuild();
  const alarms = startAlarms(say, (order) => processes.tellAlarms(order));
  const logs = childLogs(folder.path, say, alarms);
  const processes: Processes = new Processes({
    folder: folder.path,
    stores,
    environment,
    key,
    pingSecret: folder.pingSecret,
    strikes: settings.strikes,
    socket,
    timers,
    report: complain,
    measured: alarms.measured,
    output: logs.output,
  });
  // Whatever ends this process by its own hand takes the children along at once.
  const killAll = (): void => processes.kill();
  process.on("exit", killAll);
  try {
    const answer = await building;
    if (answer.ok) return await serve(options, { processes, alarms, build: answer.build, rebuild, key });
    processes.kill();
    complain(answer.faults);
    return INVALID;
  } finally {
    await processes.end(END_GRACE_MS);
    process.off("exit", killAll);
    alarms.stop();
    logs.close();
  }
};
