import { InvalidInput } from "../../core/errors.ts";
import { adviceOf, isJob, isOutcome, outcomeOf } from "../../core/jobs/authoring.ts";
import { boundedJson, errorFacts, toJson } from "../../core/json-safe.ts";
import { checkInput, isStandardSchema } from "../../core/standard-schema.ts";
import type { AttemptRequest, Part } from "../../ports/attempts.ts";
import { type ContextDeps, makeContext } from "./context.ts";
import { listShards } from "./list-shards.ts";
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
    const { code, schema } = optionsOf(await job, deps.request);
    const { context, outcomes } = makeContext({ ...deps, input: await inputFor(schema, deps.request) });
    deps.signal.throwIfAborted();
    const result: unknown = await code(context);
    if (isOutcome(result)) return outcomeOf(result);
    if (deps.request.part?.kind === "list") {
      return { kind: "returned", result: await listShards(result, deps) };
    }
    if (outcomes.length > 0) context.log.warn(FORGOTTEN);
    const safe = toJson(result);
    return { kind: "returned", ...(safe !== undefined && { result: boundedJson(safe, RESULT_BYTES) }) };
  } catch (thrown) {
    return endOf(thrown);
  }
};

const FORGOTTEN = "skip, cancel, snooze or continueLater was called, and neither returned nor thrown";

const OPTION_OF: { readonly [part in Part["kind"]]: string } = {
  list: "shards",
  shard: "handler",
  join: "join",
};

const optionsOf = (
  job: unknown,
  { job: name, part }: AttemptRequest,
): { code(context: unknown): unknown; readonly schema: unknown } => {
  if (!isJob(job)) throw new Error(`this build has no job named "${name}"`);
  const option = part === undefined ? "handler" : OPTION_OF[part.kind];
  const code: unknown = Reflect.get(job.options, option);
  if (typeof code !== "function") throw new Error(`the job has no ${option}`);
  return { code: (context) => code(context), schema: Reflect.get(job.options, "schema") };
};

const inputFor = async (schema: unknown, { input }: AttemptRequest): Promise<unknown> => {
  if (!isStandardSchema(schema)) return input;
  const checked = await checkInput(schema, input);
  if (checked.ok) return checked.value;
  throw new InputRefused(checked.problems.join("; "));
};

/** A list that cannot be taken as it is will be no better the next time. */
const isListRefused = (thrown: unknown): boolean =>
  thrown instanceof InvalidInput && thrown.field === "shards";

const endOf = (thrown: unknown): HandlerEnd => {
  try {
    if (isOutcome(thrown)) return outcomeOf(thrown);
    const isRefused = thrown instanceof InputRefused || isListRefused(thrown);
    const advice = isRefused ? { permanent: true } : adviceOf(thrown);
    return { kind: "threw", error: errorFacts(thrown), ...advice };
  } catch {
    // A thrown proxy may throw at any look.
    return { kind: "threw", error: errorFacts(thrown), permanent: false };
  }
};
