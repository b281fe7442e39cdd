import { AsyncLocalStorage } from "node:async_hooks";
import process from "node:process";
import { adviceOf, isJob, isOutcome, outcomeOf } from "../../core/authoring.ts";
import { boundedJson, errorFacts, toJson } from "../../core/json-safe.ts";
import { checkInput, isStandardSchema } from "../../core/standard-schema.ts";
import type { AttemptRequest, PreviousSuccess } from "../../ports/attempts.ts";
import { openChannel } from "./channel.ts";
import { makeContext } from "./context.ts";
import type { HandlerEnd, ToThread } from "./messages.ts";

const RESULT_BYTES = 32 * 1024;

/** The attempt in this thread, and whatever its code started, also after its handler has returned. */
interface Attempt {
  readonly request: AttemptRequest;
  readonly abort: AbortController;
  previous?: { resolve(found: PreviousSuccess | undefined): void; reject(error: Error): void };
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

const optionsOf = (jobs: unknown, name: string): { readonly handler: unknown; readonly schema: unknown } => {
  const job: unknown =
    typeof jobs === "object" && jobs !== null && Object.hasOwn(jobs, name)
      ? Reflect.get(jobs, name)
      : undefined;
  if (!isJob(job)) throw new Error(`this build has no job named "${name}"`);
  return { handler: Reflect.get(job.options, "handler"), schema: Reflect.get(job.options, "schema") };
};

class InputRefused extends Error {
  override readonly name = "InputRefused";
}

const inputFor = async (schema: unknown, { input }: AttemptRequest): Promise<unknown> => {
  if (!isStandardSchema(schema)) return input;
  const checked = await checkInput(schema, input);
  if (checked.ok) return checked.value;
  throw new InputRefused(checked.problems.join("; "));
};

const run = async (jobs: Promise<unknown>, attempt: Attempt, endsAtMs: number): Promise<HandlerEnd> => {
  try {
    const { handler, schema } = optionsOf(await jobs, attempt.request.job);
    if (typeof handler !== "function") throw new Error("the job has no handler");
    const { context, outcomes } = makeContext({
      request: attempt.request,
      endsAtMs,
      signal: attempt.abort.signal,
      input: await inputFor(schema, attempt.request),
      log: (level, message, fields) => post({ kind: "log", level, message, fields }),
      previous: () => askPrevious(attempt),
    });
    attempt.abort.signal.throwIfAborted();
    const result: unknown = await handler(context);
    if (isOutcome(result)) return outcomeOf(result);
    if (outcomes.length > 0)
      context.log.warn("skip, cancel or snooze was called, and neither returned nor thrown");
    const safe = toJson(result);
    return { kind: "returned", ...(safe !== undefined && { result: boundedJson(safe, RESULT_BYTES) }) };
  } catch (thrown) {
    return endOf(thrown);
  }
};

const endOf = (thrown: unknown): HandlerEnd => {
  try {
    if (isOutcome(thrown)) return outcomeOf(thrown);
    const advice = thrown instanceof InputRefused ? { permanent: true } : adviceOf(thrown);
    return { kind: "threw", error: errorFacts(thrown), ...advice };
  } catch {
    // A thrown proxy may throw at any look.
    return { kind: "threw", error: errorFacts(thrown), permanent: false };
  }
};

let asked: Promise<PreviousSuccess | undefined> | undefined;
const askPrevious = (attempt: Attempt): Promise<PreviousSuccess | undefined> => {
  asked ??= new Promise((resolve, reject) => {
    attempt.previous = { resolve, reject };
    post({ kind: "previous" });
  });
  return asked;
};

const onMessage = (jobs: Promise<unknown>, message: ToThread): void => {
  switch (message.kind) {
    case "run": {
      const attempt: Attempt = { request: message.request, abort: new AbortController() };
      current = attempt;
      asked = undefined;
      const ended = attemptOfCode.run(attempt, () => run(jobs, attempt, message.endsAtMs));
      void ended.then((end) => {
        current = undefined;
        post({ kind: "ended", end, worn });
      });
      return;
    }
    case "abort":
      current?.abort.abort(new DOMException(message.message, message.name));
      return;
    case "previous": {
      const { error, found } = message;
      if (error) current?.previous?.reject(Object.assign(new Error(error.message), { name: error.name }));
      else current?.previous?.resolve(found);
      return;
    }
  }
};

process.on("uncaughtException", onUncaught);
process.on("unhandledRejection", onUncaught);
const jobs = load(channel.data.jobsFile);
channel.listen((message) => onMessage(jobs, message));
await jobs;
loaded = true;
post({ kind: "ready" });
