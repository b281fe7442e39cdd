import { InvalidInput } from "../errors.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from "../time.ts";

/** The instant from which a zone's clock shows another offset. */
export interface Transition {
  readonly atMs: number;
  /** UTC offset until `atMs`: wall time = instant + offset. */
  readonly beforeMs: number;
  /** UTC offset from `atMs` on. Larger than `beforeMs` = wall times are missing; smaller = they come twice. */
  readonly afterMs: number;
}

/** A stretch [.., untilMs) around an instant in which the offset does not change, nor a day before it. */
export interface Calm {
  readonly offsetMs: number;
  readonly untilMs: number;
}

export interface Zone {
  /** As it was given. */
  readonly name: string;
  offsetAt(atMs: number): number;
  /** Transitions in [fromMs, untilMs), ascending. */
  transitionsIn(fromMs: number, untilMs: number): readonly Transition[];
  /** Undefined where a transition is near. */
  calmAt(atMs: number): Calm | undefined;
}

/**
 * Offsets are sampled on this grid. Two transitions that undo one another would be missed if both fell between
 * two samples; from 1970 to 2200 no zone has such a pair closer than 6.95 days (America/Boa_Vista, October
 * 2000; Asia/Gaza, October 2040).
 */
const GRID_MS = 6 * DAY_MS;

interface Stretch {
  readonly offsetMs: number;
  readonly transitions: readonly Transition[];
}

const NONE: readonly Transition[] = [];

/** `7 PM GMT-05:00`, `12 AM GMT`, `11 PM GMT-00:44:30`: ICU's spelling in en-US. */
const readOffset = (text: string): number => {
  const at = text.lastIndexOf("GMT");
  if (at === -1) throw new Error(`no offset in '${text}'`);
  const digits = text.slice(at + 4);
  if (digits === "") return 0;
  const [hours = 0, minutes = 0, seconds = 0] = digits.split(":").map(Number);
  const size = hours * HOUR_MS + minutes * MINUTE_MS + seconds * SECOND_MS;
  return text[at + 3] === "-" ? -size : size;
};

/** Clocks change on a quarter of an hour, but for a few (00:01 in St John's); those are looked for to the second. */
const COARSE_MS = 15 * MINUTE_MS;

/** The end of the stretch [fromMs, ..) of one offset, to `stepMs`; the offset at `toMs` is another. */
const bisect = (
  offsetAt: (atMs: number) => number,
  [fromMs, toMs]: readonly [number, number],
  stepMs: number,
) => {
  const offsetMs = offsetAt(fromMs);
  let low = Math.floor(fromMs / stepMs);
  let high = Math.ceil(toMs / stepMs);
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (offsetAt(middle * stepMs) === offsetMs) low = middle;
    else high = middle;
  }
  return high * stepMs;
};

/** The first instant after `fromMs` whose offset differs from that at `fromMs`; one in (fromMs, toMs] exists. */
const changeAfter = (offsetAt: (atMs: number) => number, fromMs: number, toMs: number): number => {
  const coarse = bisect(offsetAt, [fromMs, toMs], COARSE_MS);
  if (offsetAt(coarse - SECOND_MS) === offsetAt(fromMs)) return coarse;
  return bisect(offsetAt, [Math.max(fromMs, coarse - COARSE_MS), coarse], SECOND_MS);
};

const transitionsBetween = (
  offsetAt: (atMs: number) => number,
  fromMs: number,
  toMs: number,
): readonly Transition[] => {
  const found: Transition[] = [];
  const last = offsetAt(toMs);
  let atMs = fromMs;
  let beforeMs = offsetAt(fromMs);
  while (beforeMs !== last) {
    atMs = changeAfter(offsetAt, atMs, toMs);
    const afterMs = offsetAt(atMs);
    found.push({ atMs, beforeMs, afterMs });
    beforeMs = afterMs;
  }
  return found.length === 0 ? NONE : found;
};

const fixedZone = (name: string, offsetMs: number): Zone => {
  const calm: Calm = { offsetMs, untilMs: Number.POSITIVE_INFINITY };
  return { name, offsetAt: () => offsetMs, transitionsIn: () => NONE, calmAt: () => calm };
};

/** Everything it keeps is a memory of what Intl answered; the answers never change within a process. */
const sampledZone = (name: string, format: Intl.DateTimeFormat): Zone => {
  const samples = new Map<number, number>();
  const stretches = new Map<number, Stretch>();
  const calms = new Map<number, Calm | null>();
  const ask = (atMs: number): number => readOffset(format.format(atMs));

  const sample = (index: number): number => {
    let offsetMs = samples.get(index);
    if (offsetMs === undefined) {
      offsetMs = ask(index * GRID_MS);
      samples.set(index, offsetMs);
    }
    return offsetMs;
  };

  const stretch = (index: number): Stretch => {
    let found = stretches.get(index);
    if (found === undefined) {
      const offsetMs = sample(index);
      const quiet = sample(index + 1) === offsetMs;
      const transitions = quiet ? NONE : transitionsBetween(ask, index * GRID_MS, (index + 1) * GRID_MS);
      found = { offsetMs, transitions };
      stretches.set(index, found);
    }
    return found;
  };

  const isQuiet = (index: number): boolean => stretch(index).transitions.length === 0;

  return {
    name,
    offsetAt(atMs) {
      const { offsetMs, transitions } = stretch(Math.floor(atMs / GRID_MS));
      return transitions.findLast((transition) => transition.atMs <= atMs)?.afterMs ?? offsetMs;
    },
    transitionsIn(fromMs, untilMs) {
      let found = NONE;
      for (let index = Math.floor(fromMs / GRID_MS); index * GRID_MS < untilMs; index++) {
        const { transitions } = stretch(index);
        if (transitions.length > 0) {
          found = [...found, ...transitions.filter(({ atMs }) => atMs >= fromMs && atMs < untilMs)];
        }
      }
      return found;
    },
    calmAt(atMs) {
      const index = Math.floor(atMs / GRID_MS);
      let calm = calms.get(index);
      if (calm === undefined) {
        const isCalm = isQuiet(index - 1) && isQuiet(index) && isQuiet(index + 1);
        calm = isCalm ? { offsetMs: sample(index), untilMs: (index + 2) * GRID_MS - DAY_MS } : null;
        calms.set(index, calm);
      }
      return calm ?? undefined;
    },
  };
};

const AREAS =
  /^(Africa|America|Antarctica|Arctic|Asia|Atlantic|Australia|Brazil|Canada|Chile|Etc|Europe|Indian|Mexico|Pacific|US)\//;

/** The names of the tz database that stand without an area. ICU also takes abbreviations (PST, IST): not names. */
const BARE_NAMES = new Set(
  (
    "UTC GMT CET CST6CDT Cuba EET EST EST5EDT Egypt Eire GB GB-Eire GMT+0 GMT-0 GMT0 Greenwich HST Hongkong " +
    "Iceland Iran Israel Jamaica Japan Kwajalein Libya MET MST MST7MDT NZ NZ-CHAT Navajo PRC PST8PDT Poland " +
    "Portugal ROC ROK Singapore Turkey UCT Universal W-SU WET Zulu"
  ).split(" "),
);

const UTC_NAMES = new Set(["UTC", "GMT", "Etc/UTC", "Etc/GMT"]);

/** Intl forgives case; a part in capitals only is right for short ones (`Australia/NSW`, `Etc/GMT+5`). */
const isSpeltAsName = (name: string): boolean =>
  BARE_NAMES.has(name) ||
  (AREAS.test(name) &&
    name
      .split("/")
      .every(
        (part) => /^[A-Z]/.test(part) && (/[a-z]/.test(part) || /^([A-Z]{2,3}|GMT[+-]?\d+|GMT0)$/.test(part)),
      ));

const refuse = (name: string, hint: string): InvalidInput =>
  new InvalidInput("unknown_timezone", `no such time zone: '${name.slice(0, 64)}'`, {
    field: "timezone",
    hint,
  });

const USE_IANA = "an IANA name, for example 'Europe/Berlin' or 'UTC'";

const formatOf = (name: string): Intl.DateTimeFormat => {
  if (name.length > 64 || !/^[A-Za-z]/.test(name)) throw refuse(name, USE_IANA);
  try {
    return new Intl.DateTimeFormat("en-US", { timeZone: name, timeZoneName: "longOffset", hour: "numeric" });
  } catch (cause) {
    if (cause instanceof RangeError) throw refuse(name, USE_IANA);
    throw cause;
  }
};

const zones = new Map<string, Zone>();

/**
 * The zone of an IANA name, links (`US/Eastern`) included, spelt exactly.
 * @throws InvalidInput `unknown_timezone` for anything else: offsets, abbreviations, other case, the empty text.
 */
export const parseZone = (name: string): Zone => {
  const known = zones.get(name);
  if (known !== undefined) return known;
  const format = formatOf(name);
  const canonical = format.resolvedOptions().timeZone;
  if (canonical !== name && canonical.toLowerCase() === name.toLowerCase()) {
    throw refuse(name, `write '${canonical}'`);
  }
  if (!isSpeltAsName(name)) throw refuse(name, USE_IANA);
  const zone = UTC_NAMES.has(canonical) ? fixedZone(name, 0) : sampledZone(name, format);
  zones.set(name, zone);
  return zone;
};
