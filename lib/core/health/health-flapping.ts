import { HOUR_MS } from "../time.ts";
import type { Health, Seen } from "./health.ts";
import type { News } from "./health-news.ts";

/** So many changes within that time are too many to be told one by one. */
export const MAX_CHANGES = 6;
const WITHIN_MS = 6 * HOUR_MS;
/** A job that has not changed for that long is steady. */
const STEADY_AFTER_MS = 2 * HOUR_MS;

/** When a job whose last change that was is steady, unless it changes again. */
export const steadyAtMs = ({ changesMs }: Pick<Health, "changesMs">): number =>
  (changesMs.at(-1) ?? 0) + STEADY_AFTER_MS;

export interface Told {
  readonly told: readonly News[];
  readonly flappingSinceMs?: number;
}

const flappingNews = (count: number): News => ({
  kind: "flapping",
  topic: "notify",
  reason: `its health changed ${count} times within 6 hours; until it has been steady for 2 hours, only a page is told`,
  count,
  opens: true,
});

/** Nothing but a page comes through while a job flaps, and nothing at all in a planned silence. */
export const tellable = (before: Health, news: readonly News[], { nowMs, mutedUntilMs }: Seen): Told => {
  const isMuted = mutedUntilMs !== undefined;
  const recent = before.changesMs.filter((atMs) => atMs > nowMs - WITHIN_MS);
  const isSteady = nowMs >= steadyAtMs(before);
  const flapped = before.flappingSinceMs !== undefined && !isSteady;
  const pages = news.filter(({ isPage }) => isPage === true);
  // It begins with the first thing that is not told for it.
  const begins = !isSteady && recent.length >= MAX_CHANGES && news.length > pages.length;
  if (!flapped && !begins) return { told: isMuted ? [] : news };
  const flappingSinceMs = before.flappingSinceMs ?? nowMs;
  if (isMuted) return { told: [], flappingSinceMs };
  return { told: flapped ? pages : [...pages, flappingNews(recent.length)], flappingSinceMs };
};
