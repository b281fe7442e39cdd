import { defineJob } from "belfry";
import { type Found, type Link, openLinks } from "./store/links.ts";
import { NOTES_ACCESS } from "./store/table.ts";

/** `ENOTFOUND`, `ECONNREFUSED`, `TimeoutError`, ... */
const reasonOf = (error: unknown): string => {
  if (!(error instanceof Error)) return String(error);
  const { cause } = error;
  return cause instanceof Error && "code" in cause ? String(cause.code) : error.name;
};

/**
 * A page that is gone or silent is what we look for, no failure; that our own time is up is one. Where strangers write
 * the notes, refuse links to private addresses before you ask for them.
 */
const check = async ({ address }: Link, timeoutMs: number, signal: AbortSignal): Promise<Found> => {
  try {
    const limit = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
    const response = await fetch(address, { signal: limit });
    await response.body?.cancel();
    return { status: response.status };
  } catch (error) {
    signal.throwIfAborted();
    return { problem: reasonOf(error) };
  }
};

const isBroken = (found: Found): boolean => "problem" in found || found.status >= 400;

/** Safe to repeat: a link has one result, that of the latest slot. */
export default defineJob({
  description: "Asks for each page that a note links to, and keeps what became of it",
  schedule: "0 * * * *",
  input: { timeoutMs: 5_000, atOnce: 4 },
  timeout: "10 minutes",
  ...NOTES_ACCESS,

  async handler({ input, slot, signal, log }) {
    const links = await openLinks();
    const left = links.all(signal);
    const broken: string[] = [];
    let checkedCount = 0;

    const checkOneByOne = async (): Promise<void> => {
      for await (const link of left) {
        const found = await check(link, input.timeoutMs, signal);
        await links.store(link, found, slot);
        checkedCount += 1;
        if (!isBroken(found)) continue;
        broken.push(link.url);
        log.warn("a link is broken", { url: link.url, ...found });
      }
    };
    // All take from the same list, so that a slow page keeps one of them, and the others go on.
    await Promise.all(Array.from({ length: input.atOnce }, checkOneByOne));
    return { checkedCount, broken: broken.sort() };
  },
});
