import { AGENDA_KEY, enteredDueKey, OLDEST_DELIVERY_MS, packedDueKey } from "../items.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../time.ts";
import { absent, addMembers, all, equals, type Item, remove, set, type Write } from "../write.ts";

/**
 * The agenda says, minute by minute, which run-time schedules to look at, so that the watchdog reads what is due and
 * nothing else. A walk through all of them plans a day ahead; who creates or edits one enters it himself for as long as
 * a walk that has not seen the change may have planned. An entry only asks, as a message does: the record decides. So
 * none is ever taken out, and one too many does no harm.
 */

/** A walk begins so long before its window: it has that time to get through all of them. */
const LEAD_MS = 12 * HOUR_MS;
const WINDOW_MS = DAY_MS;

/**
 * For so long who changes an automation enters it himself, before he writes the change: no walk that began before the
 * change could be read goes further. The hour covers a process that sleeps in between, and clocks.
 */
export const ENTERED_AHEAD_MS = LEAD_MS + WINDOW_MS + HOUR_MS;

export interface Agenda {
  /** All minutes before are looked at; of this one the pages up to `lookedPage`. */
  readonly lookedUntilMs: number;
  readonly lookedPage?: string;
  /** All minutes before are planned. */
  readonly plannedUntilMs: number;
  readonly walk?: Walk;
}

/** On its way through all automations, to plan the minutes from `plannedUntilMs` to `toMs`. */
export interface Walk {
  readonly toMs: number;
  /** Where it goes on. */
  readonly part: number;
  readonly after?: string;
  /** Counted from 0; each piece has pages of its own. */
  readonly piece: number;
}

export const agendaIn = (item: Item | undefined): Agenda | undefined => {
  if (item === undefined) return undefined;
  const { lookedUntilMs, lookedPage, plannedUntilMs, walkToMs, walkPart, walkAfter, piece } = item;
  return {
    lookedUntilMs: Number(lookedUntilMs),
    plannedUntilMs: Number(plannedUntilMs),
    ...(typeof lookedPage === "string" ? { lookedPage } : {}),
    ...(walkToMs === undefined
      ? {}
      : {
          walk: {
            toMs: Number(walkToMs),
            part: Number(walkPart),
            piece: Number(piece),
            ...(typeof walkAfter === "string" ? { after: walkAfter } : {}),
          },
        }),
  };
};

/** The first minute at or after an instant. */
export const minuteFrom = (atMs: number): number => Math.ceil(atMs / MINUTE_MS) * MINUTE_MS;
const minuteOf = (atMs: number): number => Math.floor(atMs / MINUTE_MS) * MINUTE_MS;

/** With the first automation; before, there is nothing to look at. An hour back, since others' clocks may be behind. */
export const openAgenda = (nowMs: number): Write => {
  const fromMs = minuteOf(nowMs - HOUR_MS);
  return {
    key: AGENDA_KEY,
    condition: absent("plannedUntilMs"),
    changes: [set("lookedUntilMs", fromMs), set("plannedUntilMs", fromMs)],
  };
};

/** Forward, and only from where the pass began. */
export const moveLooked = (
  seen: Agenda,
  to: { readonly lookedUntilMs: number; readonly lookedPage?: string },
): Write => ({
  key: AGENDA_KEY,
  condition: all(
    equals("lookedUntilMs", seen.lookedUntilMs),
    seen.lookedPage === undefined ? absent("lookedPage") : equals("lookedPage", seen.lookedPage),
  ),
  changes: [
    set("lookedUntilMs", to.lookedUntilMs),
    to.lookedPage === undefined ? remove("lookedPage") : set("lookedPage", to.lookedPage),
  ],
});

/** Is the time near for which nothing is planned? */
export const needsWalk = ({ walk, plannedUntilMs }: Agenda, nowMs: number): boolean =>
  walk === undefined && plannedUntilMs - LEAD_MS <= nowMs;

/** After an outage one walk makes up for all the days. */
export const beginWalk = ({ plannedUntilMs }: Agenda, nowMs: number): Write => ({
  key: AGENDA_KEY,
  condition: all(equals("plannedUntilMs", plannedUntilMs), absent("walkToMs")),
  changes: [
    set("walkToMs", minuteOf(Math.max(plannedUntilMs, nowMs) + WINDOW_MS)),
    set("walkPart", 0),
    set("piece", 0),
  ],
});

/** The next piece; undefined: that was the last one. */
export const moveWalk = (
  { toMs, piece }: Walk,
  next: { readonly part: number; readonly after?: string } | undefined,
): Write => ({
  key: AGENDA_KEY,
  condition: all(equals("walkToMs", toMs), equals("piece", piece)),
  changes:
    next === undefined
      ? [
          set("plannedUntilMs", toMs),
          ...["walkToMs", "walkPart", "walkAfter", "piece"].map((name) => remove(name)),
        ]
      : [
          set("walkPart", next.part),
          set("piece", piece + 1),
          next.after === undefined ? remove("walkAfter") : set("walkAfter", next.after),
        ],
});

const pageExpiresAtS = (minuteMs: number): number =>
  Math.floor((minuteMs + OLDEST_DELIVERY_MS + DAY_MS) / 1_000);

export const enterDue = (minuteMs: number, id: string): Write => ({
  key: enteredDueKey(minuteMs, id),
  changes: [addMembers("ids", id), set("expiresAtS", pageExpiresAtS(minuteMs))],
});

export const idsIn = (page: Item): readonly string[] => (page["ids"] instanceof Set ? [...page["ids"]] : []);

/** Of an item's kilobyte what its key, its names and its expiry leave. */
const PAGE_BYTES = 940;

/** The ids of a minute as pages that are written as one unit each: about 60 of 15 characters. */
const packed = (ids: readonly string[]): readonly (readonly string[])[] => {
  const pages: string[][] = [];
  let bytes = PAGE_BYTES;
  for (const id of ids) {
    bytes += id.length + 1;
    if (bytes > PAGE_BYTES) {
      pages.push([]);
      bytes = id.length + 1;
    }
    pages.at(-1)?.push(id);
  }
  return pages;
};

/** Members are added, never replaced: two watchdogs that walk the same piece may have packed it differently. */
export function* packedPages(due: ReadonlyMap<number, readonly string[]>, piece: number): Iterable<Write> {
  for (const [minuteMs, ids] of due) {
    for (const [n, page] of packed(ids).entries()) {
      yield {
        key: packedDueKey(minuteMs, piece, n),
        changes: [addMembers("ids", ...page), set("expiresAtS", pageExpiresAtS(minuteMs))],
      };
    }
  }
}
