import type { AlertKind, AlertTopic } from "../alerts/alert.ts";
import { durationText, roughText } from "../duration.ts";
import { automationIdIn, runIdOf, slotMsOf } from "../identity.ts";
import type { JobDefinition } from "../jobs/job.ts";
import { shortIsoOf } from "../time.ts";
import type { Health, Known, Level, Seen, Streak, Trouble } from "./health.ts";
import { type Fact, isFailed, isSlow, isStuck, startedLate } from "./health-facts.ts";

/** Something that people do not know yet. */
export interface News {
  readonly kind: AlertKind;
  readonly topic: AlertTopic;
  readonly reason: string;
  readonly fact?: Fact;
  readonly count?: number;
  /** Somebody is to be woken, who was not before. */
  readonly isPage?: boolean;
  /** Its end is told too. */
  readonly opens?: boolean;
  /** Of a row of failures: how loud it is with that. */
  readonly level?: Level;
  /** Troubles that are known with it. */
  readonly covers?: readonly Trouble[];
}

/** What a job's health is now, beside what it was. */
export interface Turn {
  readonly job: JobDefinition;
  readonly before: Health;
  readonly seen: Seen;
  readonly streak?: Streak;
  /** Those of the streak, newest first. */
  readonly failures: readonly Fact[];
  readonly troubles: readonly Trouble[];
  readonly runs: readonly Fact[];
  /** The job has paused itself, or is about to. */
  readonly pausesItself: boolean;
}

export const keyOf = (kind: string, { slotKey, epoch }: { slotKey: string; epoch: number }): string =>
  `${kind}~${slotKey}~${epoch}`;

const ENDS: { readonly [state: string]: string } = {
  dead: "the run is dead",
  missed: "the slot was missed",
  expired: "the run expired",
};

const endText = ({ state, reason, error }: Fact): string => {
  const why = [reason, error === undefined ? undefined : `${error.name}: ${error.message}`];
  const is = ENDS[state] ?? "the run is tried again";
  return [is, ...why].filter((text) => text !== undefined).join(": ");
};

export const failuresText = (count: number): string =>
  count === 1 ? "1 failure" : `${count} failures in a row`;

const inARow = ({ count, firstSlotKey }: Streak): string =>
  `${failuresText(count)} since ${shortIsoOf(slotMsOf(firstSlotKey))}`;

const streakText = (streak: Streak, newest: Fact | undefined): string => {
  const end = newest === undefined ? "" : endText(newest);
  return streak.count === 1 ? end : `${inARow(streak)}; the newest: ${end}`;
};

/** A success came between, even if nobody looked then. */
export const isNewStreak = (old: Streak | undefined, streak: Streak): boolean =>
  old === undefined || streak.firstSlotKey > old.lastSlotKey;

/** How loud people know the row of failures to be. */
export const knownLevel = ({ known, streak: old }: Health, streak: Streak | undefined): Level =>
  known === undefined || streak === undefined || isNewStreak(old, streak) ? 0 : known.level;

/** The pause of a run-time schedule is not that of its job. */
const howToResume = ({ name, subject }: JobDefinition): string =>
  automationIdIn(subject) === undefined
    ? `"belfry resume ${name}" lets it fire again`
    : "it fires again when it is resumed";

const streakNews = (turn: Turn): readonly News[] => {
  const { job, before, streak, failures, pausesItself } = turn;
  const [fact] = failures;
  if (streak === undefined || fact === undefined) return [];
  const was = knownLevel(before, streak);
  const isPage = streak.level === 2 && was < 2;
  const pausing = pausesItself && before.known?.paused !== true;
  if (!pausing && streak.level <= was) return [];
  const what = streakText(streak, fact);
  const told = { fact, count: streak.count, isPage, opens: true, level: streak.level } as const;
  const topic = isPage ? "page" : "notify";
  if (pausing) {
    const reason = `it paused itself after ${what}; ${howToResume(job)}`;
    return [{ ...told, kind: "paused", topic, reason }];
  }
  const kind = fact.state === "missed" ? "missed" : streak.count === 1 ? "failed" : "failing";
  return [{ ...told, kind, topic, reason: what }];
};

const troubleText = ({ job, seen }: Turn, { kind }: Trouble, fact: Fact): string => {
  const runId = runIdOf({ subject: job.subject, slotKey: fact.slotKey });
  switch (kind) {
    case "late":
      return `its run has not started within ${durationText(job.graceMs)} of ${shortIsoOf(fact.dueMs)}`;
    case "stuck":
      return "its worker gave no sign of life for longer than its lease; the run is sent again";
    case "overrun":
      return `its run is not over ${roughText(seen.nowMs - (fact.startedAtMs ?? seen.nowMs))} after its start`;
    case "parked":
      return `its run waits for a person${fact.reason === undefined ? "" : `: ${fact.reason}`}; "belfry retry ${runId}" or "belfry cancel ${runId}" decides`;
  }
};

export const isLateKind = ({ kind }: Pick<Trouble, "kind">): boolean => kind === "late" || kind === "stuck";

const troubleNews = (turn: Turn): readonly News[] => {
  const fresh = turn.troubles.filter(({ known }) => !known);
  const newsOfOne = (trouble: Trouble, covers: readonly Trouble[]): readonly News[] => {
    const fact = turn.runs.find(({ slotKey }) => slotKey === trouble.slotKey);
    if (fact === undefined) return [];
    const reason = troubleText(turn, trouble, fact);
    const count = covers.length > 1 ? { count: covers.length } : {};
    return [{ kind: trouble.kind, topic: "notify", reason, fact, opens: true, covers, ...count }];
  };
  // That runs do not start, or that workers vanish, is one matter, however many runs it meets.
  const late = fresh.filter(isLateKind);
  const oldest = late.at(-1);
  return [
    ...(oldest === undefined ? [] : newsOfOne(oldest, late)),
    ...fresh.filter((trouble) => !isLateKind(trouble)).flatMap((trouble) => newsOfOne(trouble, [trouble])),
  ];
};

const grouped = (
  kind: AlertKind,
  facts: readonly Fact[],
  text: (newest: Fact) => string,
): readonly News[] => {
  const [fact] = facts;
  if (fact === undefined) return [];
  const count = facts.reduce((total, { slots }) => total + slots, 0);
  const others = count === 1 ? "" : `${count} runs; the newest: `;
  return [{ kind, topic: "notify", reason: `${others}${text(fact)}`, fact, count }];
};

/** Runs that were late, and had started before anybody saw that they had not. */
export const lateStarts = ({ job, before, seen, troubles }: Turn): readonly Fact[] => {
  const inTrouble = new Set([...before.troubles, ...troubles].map(({ slotKey }) => slotKey));
  const isNews = ({ slotKey, startedAtMs = 0 }: Fact) =>
    !inTrouble.has(slotKey) && startedAtMs > (before.lateUntilMs ?? 0);
  return seen.fresh.filter((fact) => startedLate(job, fact) && isNews(fact));
};

/** Runs whose worker was gone, and that were sent again and are over by the time they are judged. */
export const lostWorkers = ({ job, before, seen, troubles }: Turn): readonly Fact[] => {
  const inTrouble = new Set([...before.troubles, ...troubles].map(({ slotKey }) => slotKey));
  const isNews = (fact: Fact) => !inTrouble.has(fact.slotKey) && !before.noted.includes(keyOf("stuck", fact));
  return seen.fresh.filter((fact) => isStuck(job, fact, seen.nowMs) && isNews(fact));
};

/** What is over by the time it is seen: told, and nothing to recover from. */
const pastNews = (turn: Turn): readonly News[] => {
  const { job, before, seen, failures } = turn;
  const isNoted = (kind: string, fact: Fact) => before.noted.includes(keyOf(kind, fact));
  const inStreak = new Set(failures.map(({ slotKey }) => slotKey));
  const news = seen.fresh.filter(({ slotKey }) => !inStreak.has(slotKey));
  const late = lateStarts(turn).filter(({ slotKey }) => !inStreak.has(slotKey));
  const failed = news.filter(
    (fact) => fact.counts && !fact.isBackfill && isFailed(fact) && !isNoted("failed", fact),
  );
  const stuck = lostWorkers(turn).filter(({ slotKey }) => !inStreak.has(slotKey));
  const slow = before.slow ? [] : seen.fresh.filter((fact) => isSlow(job, fact) && !isNoted("slow", fact));
  return [
    ...grouped(
      "stuck",
      stuck,
      () => "its worker gave no sign of life for longer than its lease; the run was sent again, and is over",
    ),
    ...grouped("late", late, (fact) => {
      const lateMs = (fact.startedAtMs ?? fact.dueMs) - fact.dueMs;
      return `its run started ${roughText(lateMs)} late, and is ${fact.state}`;
    }),
    ...grouped("failed", failed, (fact) => `${endText(fact)}; a later slot has succeeded`),
    ...grouped("slow", slow, (fact) => {
      const tookMs = (fact.endedAtMs ?? 0) - (fact.startedAtMs ?? 0);
      return `its run took ${roughText(tookMs)}, more than ${durationText(job.alerts.slowAfterMs ?? 0)}`;
    }),
  ];
};

/** It happened once, and has no end that could be told. */
export const isPast = ({ kind, opens }: News): boolean =>
  opens !== true && kind !== "recovered" && kind !== "reminder";

/** Is nothing left of what people were told? */
export const isOverNow = ({ streak, troubles, pausesItself }: Turn): boolean =>
  streak === undefined && troubles.length === 0 && !pausesItself;

const recoveredNews = ({ topic, what }: Known): News => ({
  kind: "recovered",
  topic,
  reason: `it is up again; what was told: ${what}`,
});

const reminderNews = (turn: Turn, known: Known): readonly News[] => {
  const { job, seen, streak, troubles } = turn;
  // Of a paused job somebody knows.
  if (seen.paused !== undefined && troubles.length === 0) return [];
  if (seen.nowMs < known.atMs + job.alerts.remindEveryMs) return [];
  const reason = `still so: ${streak === undefined ? known.what : streakText(streak, turn.failures[0])}`;
  const [fact] = turn.failures;
  const of = streak === undefined || fact === undefined ? {} : { fact, count: streak.count };
  return [{ kind: "reminder", topic: "notify", reason, ...of }];
};

/** All that people do not know yet, whether or not this is the time to tell them. */
export const newsOf = (turn: Turn): readonly News[] => {
  const { known } = turn.before;
  const opening = [...streakNews(turn), ...troubleNews(turn)];
  const past = pastNews(turn);
  if (known === undefined || opening.length > 0) return [...opening, ...past];
  if (!isOverNow(turn)) return [...past, ...reminderNews(turn, known)];
  return [...past, ...(turn.job.alerts.recovery ? [recoveredNews(known)] : [])];
};
