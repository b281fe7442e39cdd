import { SECOND_MS } from "../../core/time.ts";
import type { SendAnswer } from "../../ports/channel.ts";
import type { Clock } from "../../ports/clock.ts";

/** A receiver that takes longer counts as away. */
const TIMEOUT_MS = 10 * SECOND_MS;
/** Of an answer that is quoted as the reason. */
const QUOTED_CHARACTERS = 200;

export interface HttpAnswer {
  readonly status: number;
  readonly text: string;
  readonly retryAfterMs?: number;
}

export interface Post {
  readonly url: string;
  readonly body: string;
  readonly headers?: { readonly [name: string]: string };
}

const isLoopback = (hostname: string): boolean => ["127.0.0.1", "localhost", "[::1]"].includes(hostname);

/** @throws Error that names the variable and not what it holds, unless that is an https address */
export const checkedUrl = (text: string, variable: string): URL => {
  const url = URL.canParse(text.trim()) ? new URL(text.trim()) : undefined;
  if (url?.protocol === "https:" || (url?.protocol === "http:" && isLoopback(url.hostname))) return url;
  throw new Error(`the secret ${variable} holds no https address`);
};

/** Seconds, or a date. */
const readRetryAfter = (text: string | null, nowMs: number): number | undefined => {
  if (text === null) return undefined;
  if (/^\d+$/.test(text)) return Number(text) * SECOND_MS;
  const atMs = Date.parse(text);
  return Number.isNaN(atMs) ? undefined : Math.max(0, atMs - nowMs);
};

/** An error's text could quote the address, which often is a secret. */
const whyNot = (error: unknown): string => {
  if (error instanceof Error && error.name === "TimeoutError") return "no answer within 10 seconds";
  const cause = error instanceof Error ? error.cause : undefined;
  const code = typeof cause === "object" && cause !== null ? Reflect.get(cause, "code") : undefined;
  return typeof code === "string" ? `no answer: ${code}` : "no answer";
};

/** Follows no redirect: where a message goes is for its owner to say. @throws Error when there is no answer */
export const postJson = async ({ url, body, headers }: Post, clock: Clock): Promise<HttpAnswer> => {
  try {
    const response = await fetch(url, {
      method: "POST",
      body,
      headers: { "content-type": "application/json; charset=utf-8", "user-agent": "belfry", ...headers },
      redirect: "manual",
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    const text = await response.text();
    const retryAfterMs = readRetryAfter(response.headers.get("retry-after"), clock.nowMs());
    return { status: response.status, text, ...(retryAfterMs !== undefined && { retryAfterMs }) };
  } catch (error) {
    throw new Error(whyNot(error));
  }
};

/** Those say that the message is wrong; every other refusal says that the sender or the place is. */
const ABOUT_THE_MESSAGE = [400, 413, 422];

/** What the status alone says. */
export const byStatus = ({ status, text, retryAfterMs }: HttpAnswer): SendAnswer => {
  if (status >= 200 && status < 300) return { kind: "taken" };
  const said = text.replace(/\s+/g, " ").trim().slice(0, QUOTED_CHARACTERS);
  const reason = `HTTP ${status}${said === "" ? "" : `: ${said}`}`;
  if (ABOUT_THE_MESSAGE.includes(status)) return { kind: "refused", reason };
  return { kind: "not-now", reason, ...(retryAfterMs !== undefined && { retryAfterMs }) };
};

/** How a chat robot says in the body of HTTP 200 that it has not taken a message. */
export interface BodyCodes {
  /** 0 = taken. */
  readonly code: string;
  readonly message: string;
  /** Too many messages; with how long to wait. */
  readonly busy: { readonly [code: number]: number };
  /** The message is wrong. */
  readonly refused: readonly number[];
}

const readObject = (text: string): object | undefined => {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
};

/** What the status and the code in the body say. An answer without the code is no "taken". */
export const byBody = (answer: HttpAnswer, codes: BodyCodes): SendAnswer => {
  const ofStatus = byStatus(answer);
  const body = readObject(answer.text);
  const code: unknown = body === undefined ? undefined : Reflect.get(body, codes.code);
  if (typeof code !== "number")
    return ofStatus.kind === "taken"
      ? { kind: "not-now", reason: "an answer that is none of theirs" }
      : ofStatus;
  if (code === 0) return ofStatus;
  const said = body === undefined ? "" : String(Reflect.get(body, codes.message)).slice(0, QUOTED_CHARACTERS);
  const reason = `code ${code}: ${said}`;
  if (codes.refused.includes(code)) return { kind: "refused", reason };
  const retryAfterMs = codes.busy[code] ?? answer.retryAfterMs;
  return { kind: "not-now", reason, ...(retryAfterMs !== undefined && { retryAfterMs }) };
};
