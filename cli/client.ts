import { type IncomingMessage, request } from "node:http";
import { Conflict, InvalidInput, Unavailable } from "../lib/core/errors.ts";
import type { Problem } from "../lib/inbound/operate/answers.ts";
import { findStack, NoStack, type StackFile } from "./stack-file.ts";

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

const bodyOf = async (response: IncomingMessage): Promise<unknown> => {
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk as Buffer);
  return JSON.parse(Buffer.concat(chunks).toString("utf8"));
};

interface Call {
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly body?: object;
  readonly signal?: AbortSignal | undefined;
}

// node:http and not fetch: loading fetch costs 20 ms of every command. No agent: the socket must not keep the
// process alive after the answer.
const exchange = (stack: StackFile, { method, path, body, signal }: Call): Promise<IncomingMessage> =>
  new Promise((resolve, reject) => {
    const payload = body === undefined ? undefined : JSON.stringify(body);
    const outgoing = request(
      {
        host: "127.0.0.1",
        port: stack.port,
        method,
        path,
        agent: false,
        ...(signal === undefined ? {} : { signal }),
        headers: {
          authorization: `Bearer ${stack.key}`,
          accept: "application/json",
          ...(payload === undefined ? {} : { "content-type": "application/json" }),
        },
      },
      resolve,
    );
    outgoing.on("error", reject);
    outgoing.end(payload);
  });

const call = async <Answer>(stack: StackFile, wanted: Call): Promise<Answer> => {
  let status: number;
  let answer: unknown;
  try {
    const response = await exchange(stack, wanted);
    status = response.statusCode ?? 0;
    answer = await bodyOf(response);
  } catch (cause) {
    const why = cause instanceof Error && "code" in cause ? ` (${String(cause.code)})` : "";
    throw new NoStack("no_answer", `the local stack on port ${stack.port} does not answer${why}`);
  }
  if (status >= 400) throw errorOf({ ...(answer as Problem), status });
  return answer as Answer;
};

const withQuery = (path: string, query: Query = {}): string => {
  const given = Object.entries(query).filter(([, value]) => value !== undefined);
  const text = new URLSearchParams(given.map(([name, value]): [string, string] => [name, String(value)]));
  return given.length === 0 ? path : `${path}?${text}`;
};

/**
 * The local stack's router. A stage is never reached by accident: only `--stage` names one.
 * @throws Unavailable when there is no running stack, or the stage cannot be reached.
 */
export const connect = (options: { readonly stage?: string; readonly data?: string }): Operate => {
  if (options.stage !== undefined)
    throw new NoStack(
      "stage_unreachable",
      `stage "${options.stage}" cannot be reached: the command line of this version talks to the local stack only`,
      'leave out --stage to talk to the local stack ("npx belfry dev")',
    );
  const stack = findStack(options.data);
  return {
    get: (path, query, signal) => call(stack, { method: "GET", path: withQuery(path, query), signal }),
    post: (path, body) => call(stack, { method: "POST", path, body }),
  };
};
