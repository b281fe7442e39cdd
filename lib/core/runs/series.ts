import { expiresAtS, SERIES_KEY, seriesKey } from "../items.ts";
import {
  absent,
  all,
  any,
  atMost,
  type Condition,
  equals,
  exists,
  type Item,
  increment,
  not,
  remove,
  set,
  setOnce,
  type Value,
  type Write,
} from "../write.ts";
import type { RunState } from "./run.ts";

/**
 * A series: many runs of one job that a person asked for at once, of which a few are on their way and the rest is a
 * place in a list. A backfill goes through past slots, a retry through the dead runs. Whoever ends one of its runs, and
 * the watchdog each minute, hands out the next; every step is a conditional write, so that any number of them may try.
 *
 * The item of a series has `cursor`, the place up to which everything was handed out or left alone, and per run on its way
 * `r#<slotKey>` = `{epoch, handedAtMs}`, `held` of them. A run is listed before it is asked for: whoever
 * finds a listed run that nobody asked for asks again. REGISTRY lists the series that are not over, and how many places of
 * each pool they may take.
 */
export type SeriesKind = "backfill" | "retry";

export const SERIES_KINDS: readonly SeriesKind[] = ["backfill", "retry"];

export interface SeriesName {
  readonly subject: string;
  readonly kind: SeriesKind;
}

/** The cursor of a series that has nothing left to hand out. Sorts after every other. */
export const AT_END = "~";

/** What became of a listed run. `left`: it was somebody else's by the time it was asked for. */
export type SeriesEnd = Extract<
  RunState,
  "succeeded" | "dead" | "skipped" | "missed" | "expired" | "cancelled"
>;

const ENDS: readonly SeriesEnd[] = ["succeeded", "dead", "skipped", "missed", "expired", "cancelled"];

/** A run that the series has handed out and not seen the end of. */
export interface Handed {
  readonly slotKey: string;
  readonly epoch: number;
  readonly atMs: number;
}

export interface Series extends SeriesName {
  readonly id: string;
  readonly state: "open" | "done" | "stopped";
  readonly stopping: boolean;
  readonly reason: string | undefined;
  readonly cursor: string;
  /** In order of the slot key. */
  readonly handed: readonly Handed[];
  readonly parallel: number;
  /** Of a backfill: `[from, to)` as the person gave it; slots are handed out up to `until` at most. */
  readonly fromMs: number;
  readonly toMs: number;
  /** The cursor ends here: a slot key (exclusive), or a key of the index of bad endings (inclusive). */
  readonly until: string;
  /** Runs that ended so are run again. */
  readonly redo: readonly string[];
  /** Of a backfill: the schedule that its slots are of. */
  readonly schedule: string | undefined;
  /** How many slots or dead runs there were when it began. */
  readonly total: number;
  readonly asked: number;
  readonly left: number;
  readonly ended: { readonly [state in SeriesEnd]: number };
  readonly startedAtMs: number;
  readonly endedAtMs: number | undefined;
  readonly owner: string;
}

const HANDED_PREFIX = "r#";
const handedAttribute = (slotKey: string): string => `${HANDED_PREFIX}${slotKey}`;
const endedAttribute = (state: string): string => `n#${state}`;

const isMap = (value: Value | undefined): value is { readonly [name: string]: Value } =>
  typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Set);

const handedIn = (item: Item): readonly Handed[] =>
  Object.entries(item)
    .flatMap(([name, value]): Handed[] =>
      name.startsWith(HANDED_PREFIX) && isMap(value)
        ? [
            {
              slotKey: name.slice(HANDED_PREFIX.length),
              epoch: Number(value["epoch"]),
              atMs: Number(value["handedAtMs"]),
            },
          ]
        : [],
    )
    .sort((left, right) => (left.slotKey < right.slotKey ? -1 : 1));

/** The series in its item; undefined = there has been none. */
export const seriesIn = ({ subject, kind }: SeriesName, item: Item | undefined): Series | undefined => {
  if (item?.["st"] === undefined) return undefined;
  const number = (name: string): number => Number(item[name] ?? 0);
  const redo = item["redo"];
  const ended = Object.fromEntries(ENDS.map((state) => [state, number(endedAttribute(state))]));
  return {
    subject,
    kind,
    id: String(item["id"]),
    state: item["st"] as Series["state"],
    stopping: item["st"] === "open" && item["stopAtMs"] !== undefined,
    reason: item["reason"] === undefined ? undefined : String(item["reason"]),
    cursor: String(item["cursor"]),
    handed: handedIn(item),
    parallel: number("parallel"),
    fromMs: number("fromMs"),
    toMs: number("toMs"),
    until: String(item["until"]),
    redo: Array.isArray(redo) ? redo.map(String) : [],
    schedule: item["schedule"] === undefined ? undefined : String(item["schedule"]),
    total: number("total"),
    asked: number("asked"),
    left: number("left"),
    ended: ended as Series["ended"],
    startedAtMs: number("startedAtMs"),
    endedAtMs: item["endedAtMs"] === undefined ? undefined : number("endedAtMs"),
    owner: String(item["own"]),
  };
};

export type NewSeries = Pick<
  Series,
  | "subject"
  | "kind"
  | "id"
  | "cursor"
  | "parallel"
  | "fromMs"
  | "toMs"
  | "until"
  | "redo"
  | "schedule"
  | "total"
>;

const isOpen = equals("st", "open");

/** Begins a series where none of its name goes on. */
export const openSeries = (wanted: NewSeries, nowMs: number): Write => ({
  key: seriesKey(wanted),
  condition: not(isOpen),
  changes: [
    set("st", "open"),
    set("id", wanted.id),
    set("cursor", wanted.cursor),
    set("parallel", wanted.parallel),
    set("fromMs", wanted.fromMs),
    set("toMs", wanted.toMs),
    set("until", wanted.until),
    set("redo", [...wanted.redo]),
    wanted.schedule === undefined ? remove("schedule") : set("schedule", wanted.schedule),
    set("total", wanted.total),
    set("startedAtMs", nowMs),
    set("held", 0),
    ...["asked", "left", ...ENDS.map(endedAttribute)].map((name) => set(name, 0)),
    ...["stopAtMs", "endedAtMs", "reason", "own", "expiresAtS"].map((name) => remove(name)),
  ],
});

export interface HandOut {
  readonly runs: readonly Pick<Handed, "slotKey" | "epoch">[];
  /** Everything before it is handed out or left alone. */
  readonly cursor: string;
  /** How many were passed over. */
  readonly left: number;
  readonly token: string;
  readonly nowMs: number;
}

/** Lists the next runs, before anybody asks for them. Refused when another process was faster, and by a wish to stop. */
export const handOut = (series: Series, { runs, cursor, left, token, nowMs }: HandOut): Write => ({
  key: seriesKey(series),
  condition: all(
    isOpen,
    equals("id", series.id),
    equals("cursor", series.cursor),
    atMost("held", series.parallel - runs.length),
    absent("stopAtMs"),
  ),
  changes: [
    set("cursor", cursor),
    set("own", token),
    increment("held", runs.length),
    increment("asked", runs.length),
    increment("left", left),
    ...runs.map(({ slotKey, epoch }) => set(handedAttribute(slotKey), { epoch, handedAtMs: nowMs })),
  ],
});

/** Takes a run off the list, once: it is over, or was somebody else's (`left`, and so not asked for). */
export const settleRun = (
  name: SeriesName,
  { slotKey, epoch }: Pick<Handed, "slotKey" | "epoch">,
  end: SeriesEnd | "left",
): Write => ({
  key: seriesKey(name),
  condition: equals([handedAttribute(slotKey), "epoch"], epoch),
  changes: [
    remove(handedAttribute(slotKey)),
    increment("held", -1),
    ...(end === "left"
      ? [increment("asked", -1), increment("left", 1)]
      : [increment(endedAttribute(end), 1)]),
  ],
});

/** From now on nothing is handed out; the series ends with the runs that are on their way. */
export const stopSeries = (
  { id, ...name }: Pick<Series, "id" | "subject" | "kind">,
  nowMs: number,
  reason: string,
): Write => ({
  key: seriesKey(name),
  condition: all(isOpen, equals("id", id)),
  changes: [setOnce("stopAtMs", nowMs), setOnce("reason", reason)],
});

/** The end: nothing is on its way, and nothing is left to hand out. */
export const endSeries = (series: Series, nowMs: number): Write => {
  const isThrough = series.cursor === AT_END;
  const nothingLeft: Condition = isThrough ? equals("cursor", AT_END) : exists("stopAtMs");
  return {
    key: seriesKey(series),
    condition: all(isOpen, equals("held", 0), nothingLeft),
    changes: [
      set("st", isThrough ? "done" : "stopped"),
      set("endedAtMs", nowMs),
      set("expiresAtS", expiresAtS(nowMs)),
    ],
  };
};

/** A series that is not over, as REGISTRY lists it. */
export interface Registered extends SeriesName {
  readonly id: string;
  readonly pool: string;
  /** Places of the pool. */
  readonly places: number;
  readonly atMs: number;
}

const entryAttribute = ({ kind, subject }: SeriesName): string => `s#${kind}#${subject}`;
const placesAttribute = (pool: string): string => `p#${pool}`;

export const registeredIn = (registry: Item | undefined): readonly Registered[] =>
  Object.entries(registry ?? {}).flatMap(([name, value]): Registered[] => {
    const [prefix, kind, subject = ""] = name.split("#");
    if (prefix !== "s" || !isMap(value)) return [];
    return [
      {
        kind: kind as SeriesKind,
        subject,
        id: String(value["id"]),
        pool: String(value["pool"]),
        places: Number(value["places"]),
        atMs: Number(value["registeredAtMs"]),
      },
    ];
  });

export const placesTaken = (registry: Item | undefined, pool: string): number =>
  Number(registry?.[placesAttribute(pool)] ?? 0);

/** Takes the places of a series in its pool, of which all series together may have `most`. */
export const registerSeries = (wanted: Registered, most: number): Write => {
  const places = placesAttribute(wanted.pool);
  const entry = entryAttribute(wanted);
  return {
    key: SERIES_KEY,
    condition: all(absent(entry), any(absent(places), atMost(places, most - wanted.places))),
    changes: [
      set(entry, {
        id: wanted.id,
        pool: wanted.pool,
        places: wanted.places,
        registeredAtMs: wanted.atMs,
      }),
      increment(places, wanted.places),
    ],
  };
};

/** Gives them back, once. */
export const unregisterSeries = (registered: Registered): Write => {
  const entry = entryAttribute(registered);
  return {
    key: SERIES_KEY,
    condition: equals([entry, "id"], registered.id),
    changes: [remove(entry), increment(placesAttribute(registered.pool), -registered.places)],
  };
};
