import { createHash, createHmac, timingSafeEqual } from "node:crypto";

/** A shorter secret opens nothing. */
const LEAST_SECRET_BYTES = 32;

export const isStrong = (secret: string): boolean => Buffer.byteLength(secret) >= LEAST_SECRET_BYTES;

/**
 * The last part of a monitor's address, made of the deployment's one secret: who has an address can ping that monitor
 * and no other, and a renamed monitor keeps its own.
 */
export const pingKey = (secret: string, subject: string): string =>
  createHmac("sha256", secret).update(`belfry ping of ${subject}`).digest("base64url");

const digest = (text: string): Buffer => createHash("sha256").update(text).digest();

/** Is it the subject's key under one of the secrets? Takes as long whichever it is, and if none. */
export const isPingKey = (given: string, secrets: readonly string[], subject: string): boolean => {
  const mine = digest(given);
  // Digests are of one length, so the comparison tells nothing by its time.
  const equal = secrets.filter(isStrong).map((each) => timingSafeEqual(mine, digest(pingKey(each, subject))));
  return equal.includes(true);
};
