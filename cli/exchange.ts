/** One request to an operate router. */
export interface Call {
  readonly method: "GET" | "POST";
  /** With its query. */
  readonly path: string;
  readonly body?: object;
  readonly signal?: AbortSignal | undefined;
}

/**
 * The way to a router, and its answer: a document of its own types, or a problem.
 * @throws Unavailable when there is no answer
 */
export type Exchange = (call: Call) => Promise<{ readonly status: number; readonly body: unknown }>;
