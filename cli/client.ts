import { Conflict, InvalidInput, Unavailable } from "../lib/core/errors.ts";
import type { Problem } from "../lib/inbound/operate/answers.ts";
import type { Exchange } from "./exchange.ts";
import { localExchange } from "./local-stack.ts";
import { findStack, NoStack } from "./stack-file.ts";

/** The operate router, wherever it is. Answers are the router's own types (lib/inbound/operate/answers.ts). */
export interface Operate {
  get<Answer>(path: string, query?: Query, signal?: AbortSignal): Promise<Answer>;
  post<Answer>(path: string, body: object): Promise<Answer>;
}

/** Undefined values are left out. */
export type Query = { readonly [name: string]: string | number | undefined };

/** The router failed, through no fault of the caller. */
class StackFailed extends Error {
  readonly hint = "the stack's own output says more";
}

/** A refusal together with what the router said to do about it. */
class Refused extends Conflict {
  readonly hint: string | undefined;

  constructor({ code, detail, hint }: Problem) {
    super(code, detail);
    this.hint = hint;
  }
}

const errorOf = (problem: Problem): Error => {
  const { status, code, detail, field, hint } = problem;
  if (status === 409) return new Refused(problem);
  if (status === 401 || status === 403)
    return new NoStack("no_stack", "the stack that answers is not the one of this data folder");
  if (status === 503) return new Unavailable(code, detail);
  if (status >= 500) return new StackFailed(detail);
  return new InvalidInput(code, detail, {
    ...(field === undefined ? {} : { field }),
    ...(hint === undefined ? {} : { hint }),
  });
};

const withQuery = (path: string, query: Query = {}): string => {
  const given = Object.entries(query).filter(([, value]) => value !== undefined);
  const text = new URLSearchParams(given.map(([name, value]): [string, string] => [name, String(value)]));
  return given.length === 0 ? path : `${path}?${text}`;
};

const operateOver = (exchange: Exchange): Operate => {
  const ask = async <Answer>(...call: Parameters<Exchange>): Promise<Answer> => {
    const { status, body } = await exchange(...call);
    if (status >= 400) throw errorOf({ ...(body as Problem), status });
    return body as Answer;
  };
  return {
    get: (path, query, signal) => ask({ method: "GET", path: withQuery(path, query), signal }),
    post: (path, body) => ask({ method: "POST", path, body }),
  };
};

/** What a deployed stage needs is loaded only for one: the AWS client costs 90 ms of a command. */
const lazyStageExchange = (stage: string): Exchange => {
  const loaded = import("./stage/operate-function.ts").then(({ stageExchange }) => stageExchange(stage));
  // Told by the first call; until then nobody listens.
  loaded.catch(() => undefined);
  return async (call) => (await loaded)(call);
};

/**
 * The router of the local stack, or of the deployed stage that is named. A stage is never reached by accident: only
 * `--stage` names one.
 * @throws Unavailable when there is no running stack; a stage that cannot be reached is told by the first call
 */
export const connect = ({ stage, data }: { readonly stage?: string; readonly data?: string }): Operate =>
  operateOver(stage === undefined ? localExchange(findStack(data)) : lazyStageExchange(stage));
