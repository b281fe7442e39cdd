import type { Context } from "hono";
import { BelfryError, Conflict, InvalidInput, Unavailable } from "../../core/errors.ts";
import type { Problem } from "./answers.ts";

const TITLES = {
  400: "Bad Request",
  404: "Not Found",
  405: "Method Not Allowed",
  409: "Conflict",
  500: "Internal Server Error",
  503: "Service Unavailable",
} as const;

type Status = keyof typeof TITLES;

const NOT_FOUND: ReadonlySet<string> = new Set([
  "unknown_job",
  "unknown_run",
  "unknown_series",
  "unknown_route",
  "unknown_address",
]);

const statusOf = (error: unknown): Status => {
  if (error instanceof InvalidInput) {
    if (error.code === "method_not_allowed") return 405;
    return NOT_FOUND.has(error.code) ? 404 : 400;
  }
  if (error instanceof Conflict) return 409;
  if (error instanceof Unavailable) return 503;
  return 500;
};

/** What a caller is told of an error that is not meant for them: that it happened, and nothing of its inside. */
const INTERNAL = { code: "internal_error", message: "the request failed inside the stack" };

const problemOf = (error: unknown): Problem => {
  const status = statusOf(error);
  const { code, message } = error instanceof BelfryError && status !== 500 ? error : INTERNAL;
  const { field, hint } = error instanceof InvalidInput ? error : {};
  return {
    type: "about:blank",
    title: TITLES[status],
    status,
    code,
    detail: message,
    ...(field === undefined ? {} : { field }),
    ...(hint === undefined ? {} : { hint }),
  };
};

/**
 * The error as an answer. A bug, and what a store said when it did not answer, are reported to whoever runs the router.
 */
export const answerError = (
  context: Context,
  error: unknown,
  report: (error: unknown) => void = () => undefined,
): Response => {
  const problem = problemOf(error);
  if (problem.status >= 500) report(error);
  if (problem.status === 503) context.header("retry-after", "1");
  if (problem.status === 405) context.header("allow", "GET, POST");
  return context.body(JSON.stringify(problem), problem.status as Status, {
    "content-type": "application/problem+json",
  });
};
