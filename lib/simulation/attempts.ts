import { readRunId } from "../core/identity.ts";
import type { AttemptEnd, AttemptRequest, Attempts } from "../ports/attempts.ts";
import type { SideEffects } from "./effects.ts";
import type { Process, Universe } from "./process.ts";

/** An execution of a handler, as the outside world would have seen it. */
export interface Execution {
  readonly runId: string;
  readonly job: string;
  readonly attempt: number;
  /** What of a run with shards it did. */
  readonly part: AttemptRequest["part"];
  readonly startedAtMs: number;
  endedAtMs: number | undefined;
  /** How the handler ended, if it did so by itself or by force, and not with its process. */
  answer: AttemptEnd | undefined;
  /** Its process died under it. */
  died: boolean;
  /** Its process slept meanwhile. */
  slept(): boolean;
}

/** What handlers leave behind for those who judge the story. */
export interface Traces {
  readonly executions: Execution[];
  readonly effects: SideEffects;
}

/** What runs the handlers of one process. */
export type Handlers = (universe: Universe, process: Process, traces: Traces) => Attempts;

/** What only one handler may do at a time: a run, or one of its shards. */
export const workOf = ({
  runId,
  part,
}: {
  readonly runId: string;
  readonly part?: AttemptRequest["part"] | undefined;
}): string => (part?.kind === "shard" ? `${runId}/${part.index}` : runId);

const aboutOf = ({ runId, part }: Pick<AttemptRequest, "runId" | "part">): string => {
  const of = part?.kind === "shard" ? ` shard=${part.index}` : part === undefined ? "" : ` ${part.kind}`;
  return `${readRunId(runId)?.slotKey ?? runId}${of}`;
};

/** Notes that a handler begins, and how it ends: by itself, or with its process. */
export const notedExecution = (
  { executions }: Traces,
  { time, trace }: Universe,
  process: Process,
  request: Pick<AttemptRequest, "runId" | "job" | "attempt" | "part">,
) => {
  const execution: Execution = {
    runId: request.runId,
    job: request.job,
    attempt: request.attempt,
    part: request.part,
    startedAtMs: time.now(),
    endedAtMs: undefined,
    answer: undefined,
    died: false,
    slept: process.slept,
  };
  const number = executions.push(execution);
  const tell = (what: string): void =>
    trace?.({ atMs: time.now(), process: process.name, what, about: aboutOf(request) });
  tell(`handler begins, attempt ${request.attempt}`);
  const { promise: ended, resolve } = Promise.withResolvers<AttemptEnd>();
  const end = (answer: AttemptEnd): void => {
    if (execution.endedAtMs !== undefined) return;
    execution.endedAtMs = time.now();
    execution.answer = answer;
    tell(`handler ends: ${answer.kind}`);
    if (process.alive()) resolve(answer);
  };
  process.onDeath(() => {
    if (execution.endedAtMs !== undefined) return;
    execution.endedAtMs = time.now();
    execution.died = true;
    tell("handler dies with its process");
  });
  return { number, ended, end };
};
