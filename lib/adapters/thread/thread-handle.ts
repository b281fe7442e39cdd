import { errorFacts } from "../../core/json-safe.ts";
import type { AttemptRequest, AttemptServices, ErrorFacts } from "../../ports/attempts.ts";
import { processCarrier, threadCarrier } from "./carrier.ts";
import type { Answer, FromThread, Question, ToThread } from "./messages.ts";

/** A bundle of ours is JavaScript; in the repository Node runs the sources. */
const OWN_FILE = new URL(import.meta.url.endsWith(".ts") ? "./thread.ts" : "./thread.js", import.meta.url);

export interface ThreadDeath {
  readonly kind: "died";
  readonly exitCode: number;
  readonly outOfMemory: boolean;
  /** By `end()`, not of itself. */
  readonly asked: boolean;
  /** It had loaded the jobs. */
  readonly wasReady: boolean;
  /** What nobody caught, when that was it. */
  readonly error?: ErrorFacts;
}

type HandlerEnded = Extract<FromThread, { readonly kind: "ended" }>;

export interface Thread {
  readonly ready: Promise<void>;
  /** Never rejects. */
  readonly died: Promise<ThreadDeath>;
  /** Resolves when the handler ended by itself; not at all when the thread dies first. */
  run(request: AttemptRequest, endsAtMs: number, services: AttemptServices): Promise<HandlerEnded>;
  send(message: ToThread): void;
  /** Ends the thread by force; resolves when no code of it runs any more. */
  end(): Promise<void>;
}

interface StartOptions {
  readonly jobsFile: URL;
  readonly threadFile?: URL;
  readonly memoryMb?: number;
  readonly isolation?: "thread" | "process";
  readonly environment?: { readonly [variable: string]: string };
  readonly onOutput: (line: string, run?: { readonly job: string; readonly runId: string }) => void;
}

interface Running {
  readonly turn: number;
  readonly request: AttemptRequest;
  readonly services: AttemptServices;
  ended(message: HandlerEnded): void;
}

/** @param onWorn called when the thread is to get no other attempt. */
export const startThread = (options: StartOptions, onWorn: () => void): Thread => {
  const { jobsFile, threadFile, memoryMb, environment, onOutput, isolation } = options;
  const loaded = Promise.withResolvers<void>();
  let running: Running | undefined;
  let turns = 0;
  let wasReady = false;
  let asked = false;
  let broken: ErrorFacts | undefined;
  const onMessage = (message: FromThread): void => {
    if (message.kind === "ready") {
      wasReady = true;
      loaded.resolve();
    } else if (message.kind === "worn") onWorn();
    else if (message.kind === "broken") broken ??= message.error;
    else if (message.kind === "log") running?.services.log(message.level, message.message, message.fields);
    else if (message.kind === "progress") servicesOf(running, message)?.progress(message.progress);
    else if (message.kind === "ask") void reply(servicesOf(running, message), message, carrier.send);
    else {
      const ended = running?.ended;
      running = undefined;
      ended?.(message);
    }
  };
  const carrier = (isolation === "process" ? processCarrier : threadCarrier)({
    file: threadFile ?? OWN_FILE,
    data: { jobsFile: jobsFile.href },
    ...(memoryMb !== undefined && { memoryMb }),
    ...(environment !== undefined && { environment }),
    onMessage,
    onLine: (line) => onOutput(line, running?.request),
  });
  const died = carrier.exited.then(({ exitCode, outOfMemory, ...exit }): ThreadDeath => {
    const error = broken ?? exit.error;
    loaded.reject(new Error(error?.message ?? `the thread ended with code ${exitCode} before it was ready`));
    return { kind: "died", exitCode, outOfMemory, asked, wasReady, ...(error && { error }) };
  });
  // Whoever wants to know asks `ready`; nobody has to.
  loaded.promise.catch(() => undefined);

  return {
    ready: loaded.promise,
    died,
    send: carrier.send,
    run: (request, endsAtMs, services) =>
      new Promise((resolve) => {
        const turn = ++turns;
        running = { turn, request, services, ended: resolve };
        carrier.send({ kind: "run", turn, request, endsAtMs });
      }),
    end: async () => {
      asked = true;
      carrier.kill();
      await died;
    },
  };
};

const servicesOf = (
  running: Running | undefined,
  { turn }: { readonly turn: number },
): AttemptServices | undefined => (running?.turn === turn ? running.services : undefined);

const answerTo = (services: AttemptServices, question: Question): Promise<Answer> => {
  switch (question.call) {
    case "previous":
      return services.previous();
    case "loadState":
      return services.loadState();
    case "saveState":
      return services.saveState(question.state);
    case "addShards":
      return services.addShards(question.shards);
    case "recallEffect":
      return services.recallEffect(question.key);
    case "recordEffect":
      return services.recordEffect(question.key, question.effect);
  }
};

const reply = async (
  services: AttemptServices | undefined,
  { id, question }: Extract<FromThread, { readonly kind: "ask" }>,
  send: (message: ToThread) => void,
): Promise<void> => {
  try {
    if (services === undefined) throw new Error(`${question.call} was called after its handler had returned`);
    send({ kind: "answer", id, answer: await answerTo(services, question) });
  } catch (thrown) {
    send({ kind: "answer", id, error: errorFacts(thrown) });
  }
};
