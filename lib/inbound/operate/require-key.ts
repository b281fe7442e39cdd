import { createHash, timingSafeEqual } from "node:crypto";
import type { MiddlewareHandler } from "hono";
import { InvalidInput } from "../../core/errors.ts";
import { answerUnauthorized } from "./problems.ts";

/** Shorter ones can be guessed. */
const MIN_KEY_LENGTH = 32;

// Digests are of one length, so the comparison tells nothing of the key, not even its length.
const digestOf = (text: string): Buffer => createHash("sha256").update(text).digest();

/**
 * Lets through only what carries `Authorization: Bearer <key>`, compared in constant time.
 * @throws InvalidInput (`weak_key`) for an unset or short key: it would open the door to anyone who tries.
 */
export const requireKey = (key: string | undefined): MiddlewareHandler => {
  if (key === undefined || key.length < MIN_KEY_LENGTH)
    throw new InvalidInput("weak_key", `the key must have at least ${MIN_KEY_LENGTH} characters`);
  const expected = digestOf(key);
  return async (context, next) => {
    const given = /^Bearer (.+)$/i.exec(context.req.header("authorization") ?? "")?.[1];
    if (given === undefined || !timingSafeEqual(digestOf(given), expected))
      return answerUnauthorized(context);
    return next();
  };
};
