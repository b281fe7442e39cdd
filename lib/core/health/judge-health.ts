import type { Alert, AlertTopic } from "../alerts/alert.ts";
import { automationIdIn, runIdOf, slotMsOf } from "../identity.ts";
import type { JobDefinition } from "../jobs/job.ts";
import { defined } from "../read-options.ts";
import { MINUTE_MS } from "../time.ts";
import type { Flip, Health, HealthState, Known, Level, Seen, Streak, Trouble } from "./health.ts";
import { type Fact, isFailed, isOver, isSlow, merged, type TroubleKind, troublesOf } from "./health-facts.ts";
import { MAX_CHANGES, steadyAtMs, type Told, tellable } from "./health-flapping.ts";
import {
  failuresText,
  isLateKind,
  isNewStreak,
  isOverNow,
  isPast,
  keyOf,
  knownLevel,
  lateStarts,
  lostWorkers,
  type News,
  newsOf,
  type Turn,
} from "./health-news.ts";

export interface Judgement {
  readonly after: Health;
  readonly flips: readonly Flip[];
  /** The job has failed so often in a row that it is to be paused, and why. */
  readonly pause?: string;
  /** To be counted: runs that are late, or lost their worker, and were not before. */
  readonly late: readonly Fact[];
  readonly stuck: readonly Fact[];
  /** So many failures in a row that somebody is woken, and there were not as many before. */
  readonly reachesPage: boolean;
}

/** It failed, and somebody tries it again: that is no end of the matter before it ends. */
const isTriedAgain = (old: Streak | undefined, fact: Fact): boolean =>
  old !== undefined &&
  fact.epoch > 1 &&
  !isOver(fact) &&
  old.firstSlotKey <= fact.slotKey &&
  fact.slotKey <= old.lastSlotKey;

/**
 * Counted over runs in the order of their slots, not over time: what was skipped or cancelled neither heals nor hides.
 * @param runs newest slot first
 */
const streakOf = (
  { alerts }: JobDefinition,
  { streak: old, pausedThrough = "" }: Health,
  runs: readonly Fact[],
): { readonly streak?: Streak; readonly failures: readonly Fact[] } => {
  const ended = runs.filter(
    (fact) => fact.counts && (fact.state === "succeeded" || isFailed(fact) || isTriedAgain(old, fact)),
  );
  const successAt = ended.findIndex(({ state }) => state === "succeeded");
  const failures = successAt === -1 ? ended : ended.slice(0, successAt);
  const [newest, oldest] = [failures[0], failures.at(-1)];
  if (newest === undefined || oldest === undefined) return { failures };
  const sum = (facts: readonly Fact[]) => facts.reduce((total, { slots }) => total + slots, 0);
  const count = sum(failures);
  const pages = alerts.pageAfter !== undefined && count >= alerts.pageAfter;
  const level: Level = pages ? 2 : count >= alerts.notifyAfter ? 1 : 0;
  const sincePause = sum(failures.filter(({ slotKey }) => slotKey > pausedThrough));
  const streak = { count, sincePause, level, firstSlotKey: oldest.slotKey, lastSlotKey: newest.slotKey };
  return { failures, streak };
};

/** A person who has decided on a parked run has made it another matter only once it is over, or parked again. */
const staysSo = ({ kind, epoch }: Trouble, fact: Fact): boolean => {
  if (isOver(fact)) return false;
  return kind === "parked" ? (fact.state === "parked") === (fact.epoch === epoch) : fact.state !== "parked";
};

/**
 * Once in trouble, a run stays in it until it is over: that it starts at last, or has a new worker, is no end of the
 * matter.
 */
const troublesNow = (
  job: JobDefinition,
  before: readonly Trouble[],
  { runs, nowMs }: { readonly runs: readonly Fact[]; readonly nowMs: number },
): readonly Trouble[] => {
  const now = runs.flatMap((fact) => {
    const { slotKey, epoch } = fact;
    const mine = before.filter((trouble) => trouble.slotKey === slotKey && staysSo(trouble, fact));
    const kinds = troublesOf(job, fact, nowMs).filter((kind) => !mine.some((one) => one.kind === kind));
    const fresh = kinds.map((kind) => ({ kind, slotKey, epoch, sinceMs: nowMs, known: false }));
    return [...mine, ...fresh];
  });
  const isLateKnown = now.some((trouble) => trouble.known && isLateKind(trouble));
  return isLateKnown
    ? now.map((trouble) => (isLateKind(trouble) ? { ...trouble, known: true } : trouble))
    : now;
};

const stateOf = (
  isPaused: boolean,
  streak: Streak | undefined,
  troubles: readonly Trouble[],
): HealthState => {
  if (isPaused) return "paused";
  if (streak?.level === 2) return "down";
  if (streak !== undefined || troubles.some(({ kind }) => kind === "parked")) return "failing";
  return troubles.length > 0 ? "late" : "up";
};

const worst = (one: AlertTopic | undefined, other: AlertTopic): AlertTopic =>
  one === "page" ? "page" : other;

/** What people know once they are told. */
const knownAfter = (turn: Turn, told: readonly News[]): Known | undefined => {
  const { before, streak, pausesItself, job, seen } = turn;
  const opening = told.filter(({ opens }) => opens === true);
  const first = opening[0];
  const isSilentEnd = !job.alerts.recovery && seen.mutedUntilMs === undefined;
  if (first === undefined && isOverNow(turn) && isSilentEnd) return undefined;
  if (told.some(({ kind }) => kind === "recovered")) return undefined;
  const toldLevel = opening.find((news) => news.level !== undefined)?.level;
  const level = toldLevel ?? knownLevel(before, streak);
  if (first !== undefined) {
    const topic = opening.reduce<AlertTopic>((all, one) => worst(all, one.topic), first.topic);
    const paused = pausesItself && (toldLevel !== undefined || before.known?.paused === true);
    return { topic: worst(before.known?.topic, topic), level, paused, atMs: seen.nowMs, what: first.reason };
  }
  if (before.known === undefined) return undefined;
  const reminded = told.some(({ kind }) => kind === "reminder");
  const paused = before.known.paused && pausesItself;
  return { ...before.known, level, paused, ...(reminded ? { atMs: seen.nowMs } : {}) };
};

/** More of them than one pass brings, but after an outage. */
const MAX_NOTED = 64;

const notedAfter = (turn: Turn): readonly string[] => {
  const { job, before, seen } = turn;
  const keys = [
    ...seen.fresh.filter((fact) => fact.counts && isFailed(fact)).map((fact) => keyOf("failed", fact)),
    ...seen.fresh.filter((fact) => isSlow(job, fact)).map((fact) => keyOf("slow", fact)),
    ...lostWorkers(turn).map((fact) => keyOf("stuck", fact)),
  ];
  return [...new Set([...before.noted, ...keys])].slice(-MAX_NOTED);
};

const lateUntilMs = (turn: Turn): number | undefined => {
  const { before, seen, troubles } = turn;
  const isLate = [...before.troubles, ...troubles].some(({ kind }) => kind === "late");
  const started = lateStarts(turn).map(({ startedAtMs = 0 }) => startedAtMs);
  return isLate || started.length > 0 ? Math.max(seen.nowMs, ...started) : before.lateUntilMs;
};

const isSlowNow = ({ job, before, seen }: Turn): boolean => {
  const last = merged(seen.fresh).find(({ state }) => state === "succeeded");
  return last === undefined ? before.slow : isSlow(job, last);
};

/** While a run is in trouble, its end is looked for that often. */
const LOOK_EVERY_MS = 5 * MINUTE_MS;

const nextLookMs = (job: JobDefinition, after: Health, seen: Seen): number | undefined => {
  const { nowMs, paused, mutedUntilMs } = seen;
  const { known, troubles, flappingSinceMs } = after;
  const reminderMs = known === undefined ? undefined : known.atMs + job.alerts.remindEveryMs;
  const wanted = [
    troubles.length > 0 ? nowMs + LOOK_EVERY_MS : undefined,
    reminderMs,
    flappingSinceMs === undefined ? undefined : steadyAtMs(after),
    mutedUntilMs,
    paused?.untilMs,
  ].filter((atMs) => atMs !== undefined && atMs > nowMs);
  return wanted.length === 0 ? undefined : Math.min(...wanted.map(Number));
};

/** A note that comes before is on its way already. */
const withLook = (job: JobDefinition, { lookAtMs: notedMs, ...after }: Health, seen: Seen): Health => {
  const wantedMs = nextLookMs(job, after, seen);
  const isComing = notedMs !== undefined && notedMs > seen.nowMs;
  const lookAtMs = isComing ? Math.min(notedMs, wantedMs ?? notedMs) : wantedMs;
  return lookAtMs === undefined ? after : { ...after, lookAtMs };
};

export const alertOf = (
  job: JobDefinition,
  news: News,
  flip: { readonly n: number; readonly atMs: number },
): Alert => {
  const { kind, topic, reason, fact, count } = news;
  const automation = automationIdIn(job.subject);
  const isEnd = kind === "recovered" || kind === "removed";
  const hasEnd = isEnd || (job.alerts.recovery && !isPast(news));
  return {
    id: `flip~${job.subject}~${flip.n}`,
    topic,
    kind,
    atMs: flip.atMs,
    reason,
    job: job.name,
    ...(automation === undefined ? {} : { automation }),
    ...(automation !== undefined || job.subject === job.name ? {} : { subject: job.subject }),
    timezone: job.timezone,
    ...(job.owner === undefined ? {} : { owner: job.owner }),
    ...(job.runbook === undefined ? {} : { runbook: job.runbook }),
    ...(fact === undefined
      ? {}
      : {
          slotMs: slotMsOf(fact.slotKey),
          runId: runIdOf({ subject: job.subject, slotKey: fact.slotKey }),
        }),
    ...(fact?.error === undefined ? {} : { error: fact.error }),
    ...(count === undefined ? {} : { count }),
    ...(hasEnd ? {} : { passing: true }),
  };
};

/** One for each thing that is told; a change that nobody is told of is one too. */
const flipsOf = (turn: Turn, to: HealthState, told: readonly News[]): readonly Flip[] => {
  const { job, before, seen } = turn;
  const from = before.state;
  const flip = (index: number) => ({ n: before.flips + index + 1, atMs: seen.nowMs, from, to });
  if (told.length === 0) return from === to ? [] : [flip(0)];
  return told.map((news, index) => ({ ...flip(index), alert: alertOf(job, news, flip(index)) }));
};

const afterTurn = (turn: Turn, { told, flappingSinceMs }: Told, news: readonly News[]) => {
  const { before, seen, streak, pausesItself, job } = turn;
  const covered = new Set(told.flatMap(({ covers = [] }) => covers));
  const troubles = turn.troubles.map((one) => (covered.has(one) ? { ...one, known: true } : one));
  const state = stateOf(pausesItself || seen.paused !== undefined, streak, turn.troubles);
  const flips = flipsOf(turn, state, told);
  const isByHand = state === "paused" || before.state === "paused";
  const changes =
    (state !== before.state && !isByHand) ||
    told.some(({ kind }) => kind !== "reminder") ||
    news.some((one) => isPast(one));
  // Steady again, it starts afresh.
  const isSteadyAgain = before.flappingSinceMs !== undefined && flappingSinceMs === undefined;
  const earlier = isSteadyAgain ? [] : before.changesMs;
  const known = knownAfter(turn, told);
  const pausesNow = pausesItself && before.state !== "paused";
  const pausedThrough = pausesNow ? streak?.lastSlotKey : before.pausedThrough;
  const after: Health = {
    state,
    sinceMs: state === before.state ? before.sinceMs : seen.nowMs,
    flips: before.flips + flips.length,
    troubles,
    slow: isSlowNow(turn),
    noted: notedAfter(turn),
    changesMs: changes ? [...earlier, seen.nowMs].slice(-MAX_CHANGES) : earlier,
    ...defined({
      streak,
      known,
      lateUntilMs: lateUntilMs(turn),
      flappingSinceMs,
      pausedThrough,
      lookAtMs: before.lookAtMs,
    }),
  };
  return { after: withLook(job, after, seen), flips };
};

/**
 * What a job's health becomes by what was seen, and what is told of it. The same sight again changes nothing and tells
 * nothing, so a pass of the watchdog may be repeated.
 */
export const judgeHealth = (job: JobDefinition, before: Health, seen: Seen): Judgement => {
  const runs = merged(seen.runs, seen.fresh);
  const { streak, failures } = streakOf(job, before, runs);
  const { pauseAfter } = job.alerts;
  const pauses =
    pauseAfter !== undefined && seen.paused === undefined && (streak?.sincePause ?? 0) >= pauseAfter;
  const turn: Turn = {
    job,
    before,
    seen,
    ...(streak === undefined ? {} : { streak }),
    failures,
    troubles: troublesNow(job, before.troubles, { runs, nowMs: seen.nowMs }),
    runs,
    pausesItself: pauses || seen.paused?.byItself === true,
  };
  const news = newsOf(turn);
  const result = afterTurn(turn, tellable(before, news, seen), news);
  const known = new Set(before.troubles.map((trouble) => keyOf(trouble.kind, trouble)));
  const fresh = turn.troubles.filter((trouble) => !known.has(keyOf(trouble.kind, trouble)));
  const newly = (wanted: TroubleKind) => {
    const slotKeys = new Set(fresh.filter(({ kind }) => kind === wanted).map(({ slotKey }) => slotKey));
    return runs.filter(({ slotKey }) => slotKeys.has(slotKey));
  };
  return {
    ...result,
    ...(pauses ? { pause: `paused itself after ${failuresText(streak?.count ?? 0)}` } : {}),
    late: [...newly("late"), ...lateStarts(turn)],
    stuck: [...newly("stuck"), ...lostWorkers(turn)],
    reachesPage: streak?.level === 2 && (before.streak?.level !== 2 || isNewStreak(before.streak, streak)),
  };
};
