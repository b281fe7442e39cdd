import { AsyncLocalStorage } from "node:async_hooks";
import process from "node:process";
import { errorFacts } from "../../core/json-safe.ts";
import type { Progress } from "../../core/runs/kept.ts";
import type { AttemptRequest, AttemptServices, ErrorFacts } from "../../ports/attempts.ts";
import { callHandler } from "./call-handler.ts";
import { openChannel } from "./channel.ts";
import type { Answer, HandlerEnd, Question, ToThread } from "./messages.ts";
import { throttle } from "./throttle.ts";

/** The attempt in this thread, and whatever its code started, also after its handler has returned. */
interface Attempt {
  readonly request: AttemptRequest;
  readonly abort: AbortController;
}

const attemptOfCode = new AsyncLocalStorage<Attempt>();
let current: Attempt | undefined;
let worn = false;
let loaded = false;

const channel = openChannel();
const post = channel.post;

/**
 * An error that nobody caught. It ends the attempt that it belongs to. What an earlier attempt left behind must not
 * harm the one that has the thread now, so the thread goes on to the end of that one and is used no more.
 */
const onUncaught = (error: unknown): void => {
  const origin = attemptOfCode.getStore();
  const fatal = !loaded || (current !== undefined && (origin === undefined || origin === current));
  if (fatal) {
    channel.leave({ kind: "broken", error: errorFacts(error) });
    return;
  }
  worn = true;
  const { name, message } = errorFacts(error);
  console.error(`run ${origin?.request.runId} failed after its handler had returned: ${name}: ${message}`);
  post({ kind: "worn" });
};

const load = async (jobsFile: string): Promise<unknown> => {
  // Stack traces name the author's file and line where a map lies beside the bundle.
  process.setSourceMapsEnabled(true);
  const bundle: unknown = await import(jobsFile);
  return typeof bundle === "object" && bundle !== null && "default" in bundle ? bundle.default : undefined;
};

const jobNamed = async (jobs: Promise<unknown>, name: string): Promise<unknown> => {
  const bundle = await jobs;
  const has = typeof bundle === "object" && bundle !== null && Object.hasOwn(bundle, name);
  return has ? Reflect.get(bundle, name) : undefined;
};

interface Waiting {
  resolve(answer: Answer): void;
  reject(error: Error): void;
}

const waiting = new Map<number, Waiting>();
let questions = 0;

const ask = (turn: number, question: Question): Promise<Answer> =>
  new Promise((resolve, reject) => {
    const id = ++questions;
    waiting.set(id, { resolve, reject });
    post({ kind: "ask", turn, id, question });
  });

/** What a handler may ask of the process around it, over the channel. */
const servicesOf = (turn: number): AttemptServices & { readonly flush: () => void } => {
  let previous: Promise<Answer> | undefined;
  const progress = throttle<Progress>((said) => post({ kind: "progress", turn, progress: said }));
  // Each answer is that of its question; see `answerTo` at the other end.
  return {
    log: (level, message, fields) => post({ kind: "log", level, message, fields }),
    progress: progress.say,
    flush: progress.flush,
    previous: () => {
      previous ??= ask(turn, { call: "previous" });
      return previous as ReturnType<AttemptServices["previous"]>;
    },
    loadState: () => ask(turn, { call: "loadState" }) as ReturnType<AttemptServices["loadState"]>,
    saveState: (state) => ask(turn, { call: "saveState", state }) as ReturnType<AttemptServices["saveState"]>,
    addShards: (shards) =>
      ask(turn, { call: "addShards", shards }) as ReturnType<AttemptServices["addShards"]>,
    recallEffect: (key) =>
      ask(turn, { call: "recallEffect", key }) as ReturnType<AttemptServices["recallEffect"]>,
    recordEffect: (key, effect) =>
      ask(turn, { call: "recordEffect", key, effect }) as ReturnType<AttemptServices["recordEffect"]>,
  };
};

const run = async (
  jobs: Promise<unknown>,
  { request, abort }: Attempt,
  { turn, endsAtMs }: { readonly turn: number; readonly endsAtMs: number },
): Promise<HandlerEnd> => {
  const { flush, ...services } = servicesOf(turn);
  const job = jobNamed(jobs, request.job);
  const end = await callHandler(job, { request, services, endsAtMs, signal: abort.signal, now: Date.now });
  flush();
  return end;
};

const onMessage = (jobs: Promise<unknown>, message: ToThread): void => {
  switch (message.kind) {
    case "run": {
      const attempt: Attempt = { request: message.request, abort: new AbortController() };
      current = attempt;
      const ended = attemptOfCode.run(attempt, () => run(jobs, attempt, message));
      void ended.then((end) => {
        current = undefined;
        post({ kind: "ended", end, worn });
      });
      return;
    }
    case "abort":
      current?.abort.abort(new DOMException(message.message, message.name));
      return;
    case "answer": {
      const asker = waiting.get(message.id);
      waiting.delete(message.id);
      if ("answer" in message) asker?.resolve(message.answer);
      else asker?.reject(errorOf(message.error));
      return;
    }
  }
};

const errorOf = ({ name, message }: ErrorFacts): Error => Object.assign(new Error(message), { name });

process.on("uncaughtException", onUncaught);
process.on("unhandledRejection", onUncaught);
const jobs = load(channel.data.jobsFile);
channel.listen((message) => onMessage(jobs, message));
await jobs;
loaded = true;
post({ kind: "ready" });
