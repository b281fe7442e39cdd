import { adviceOf, isJob, isOutcome, outcomeOf } from "../../core/authoring.ts";
import { boundedJson, errorFacts, toJson } from "../../core/json-safe.ts";
import { checkInput, isStandardSchema } from "../../core/standard-schema.ts";
import type { AttemptRequest } from "../../ports/attempts.ts";
import { type ContextDeps, makeContext } from "./context.ts";
import type { HandlerEnd } from "./messages.ts";

const RESULT_BYTES = 32 * 1024;

class InputRefused extends Error {
  override readonly name = "InputRefused";
}

/**
 * Calls the handler of what `defineJob` made, and tells how it ended, whatever it returned or threw. Never rejects.
 * @param job the job, or a promise of it: where that rejects, the attempt ends with its error
 */
export const callHandler = async (job: unknown, deps: Omit<ContextDeps, "input">): Promise<HandlerEnd> => {
  try {
    const { handler, schema } = optionsOf(await job, deps.request.job);
    if (typeof handler !== "function") throw new Error("the job has no handler");
    const { context, outcomes } = makeContext({ ...deps, input: await inputFor(schema, deps.request) });
    deps.signal.throwIfAborted();
    const result: unknown = await handler(context);
    if (isOutcome(result)) return outcomeOf(result);
    if (outcomes.length > 0) context.log.warn(FORGOTTEN);
    const safe = toJson(result);
    return { kind: "returned", ...(safe !== undefined && { result: boundedJson(safe, RESULT_BYTES) }) };
  } catch (thrown) {
    return endOf(thrown);
  }
};

const FORGOTTEN = "skip, cancel, snooze or continueLater was called, and neither returned nor thrown";

const optionsOf = (job: unknown, name: string): { readonly handler: unknown; readonly schema: unknown } => {
  if (!isJob(job)) throw new Error(`this build has no job named "${name}"`);
  return { handler: Reflect.get(job.options, "handler"), schema: Reflect.get(job.options, "schema") };
};

const inputFor = async (schema: unknown, { input }: AttemptRequest): Promise<unknown> => {
  if (!isStandardSchema(schema)) return input;
  const checked = await checkInput(schema, input);
  if (checked.ok) return checked.value;
  throw new InputRefused(checked.problems.join("; "));
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
