import { durationText } from "../duration.ts";
import { InvalidInput } from "../errors.ts";
import { AUTOMATION_ID, automationSubject } from "../identity.ts";
import { automationKey, expiresAtS, ITEM_VERSION, OLDEST_DELIVERY_MS } from "../items.ts";
import type { JobDefinition } from "../jobs/job.ts";
import type { Json } from "../json.ts";
import { readExpression } from "../schedule/rule.ts";
import { parseSchedule, type UnionSchedule, unionOf } from "../schedule/schedule.ts";
import { HOUR_MS } from "../time.ts";
import { absent, all, type Condition, equals, type Item, type Key, set, type Write } from "../write.ts";

/**
 * A run-time schedule: a job, an input, a cron and its zone, for an owner. Its record is the truth of it; its runs are
 * the job's in all but their subject, `automation:<id>`, under which it has a history, a lock and a health of its own.
 */
export interface Automation {
  readonly id: string;
  /** The job's subject: it may be renamed. */
  readonly job: string;
  readonly owner: string;
  readonly input: Json;
  /** Oldest first; the last one holds now. Each holds until the next begins. */
  readonly periods: readonly Period[];
  readonly createdAtMs: number;
  /** Its record stays for as long as runs of it may. */
  readonly deletedAtMs?: number;
  /** Of the record: an edit that was decided by an older one is refused. */
  readonly revision: number;
}

export interface Period {
  readonly cron: string;
  /** IANA. */
  readonly timezone: string;
  readonly fromMs: number;
}

export interface AutomationLimits {
  /** Between two slots, by the clock on the wall. */
  readonly minimumGapMs: number;
  /** At most 1,000, which share an item. */
  readonly perOwner: number;
}

export const AUTOMATION_LIMITS: AutomationLimits = { minimumGapMs: HOUR_MS, perOwner: 100 };

/** Every walk through all of them reads it. */
const MAX_INPUT_BYTES = 4_096;
const MAX_OWNER_LENGTH = 100;
/** Earlier schedules that a look back after an outage may still have to know. */
const KEPT_PERIODS = 24;

/** @throws InvalidInput (`invalid_automation`) naming `id` */
export const checkAutomationId = (id: string): void => {
  if (AUTOMATION_ID.test(id)) return;
  throw new InvalidInput("invalid_automation", `${JSON.stringify(id.slice(0, 60))} is no id`, {
    field: "id",
    hint: "1 to 48 small letters, digits and hyphens; the first is no hyphen",
  });
};

/** @throws InvalidInput (`invalid_automation`) naming `owner` */
export const checkOwner = (owner: string): void => {
  if (/^\P{C}+$/u.test(owner) && owner.trim() === owner && owner.length <= MAX_OWNER_LENGTH) return;
  throw new InvalidInput("invalid_automation", "the owner is empty, too long, or no plain text", {
    field: "owner",
    hint: `a name or an address of 1 to ${MAX_OWNER_LENGTH} characters, without spaces around it`,
  });
};

/** @throws InvalidInput (`too_large`) naming `input` */
export const checkAutomationInput = (input: Json): void => {
  const bytes = new TextEncoder().encode(JSON.stringify(input)).length;
  if (bytes <= MAX_INPUT_BYTES) return;
  throw new InvalidInput(
    "too_large",
    `the input has ${bytes} bytes of JSON; at most ${MAX_INPUT_BYTES} fit`,
    {
      field: "input",
      hint: "keep what is big elsewhere, and give its name",
    },
  );
};

/**
 * Whether it may fire is told by its slots, not by its text.
 * @throws InvalidInput naming `cron` or `timezone`: whatever the schedule engine refuses; `invalid_schedule` for an
 *   interval or a single instant; `never_fires`; `too_frequent`
 */
export const checkPeriod = (
  { cron, timezone, fromMs }: Period,
  { minimumGapMs }: Pick<AutomationLimits, "minimumGapMs">,
): void => {
  const schedule = asCron(() => {
    if (readExpression(cron).rule.kind !== "cron") {
      throw new InvalidInput("invalid_schedule", `${JSON.stringify(cron)} is no cron expression`, {
        hint: "write five fields, for example '0 9 * * 1-5'",
      });
    }
    return parseSchedule(cron, { timezone });
  });
  const { smallestGapMs } = schedule;
  if (smallestGapMs !== undefined && smallestGapMs < minimumGapMs) {
    throw new InvalidInput(
      "too_frequent",
      `${JSON.stringify(cron)} fires again after ${durationText(smallestGapMs)}; at least ${durationText(minimumGapMs)} must lie between`,
      { field: "cron", hint: "for example '0 9 * * *', once a day" },
    );
  }
  if (schedule.next(fromMs - 1) === undefined) {
    throw new InvalidInput("never_fires", `${JSON.stringify(cron)} does not fire any more`, {
      field: "cron",
      hint: "leave the year out, or name a later one",
    });
  }
};

const asCron = <T>(read: () => T): T => {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof InvalidInput) || error.field === "timezone") throw error;
    const hint = error.hint === undefined ? {} : { hint: error.hint };
    throw new InvalidInput(error.code, error.message, { field: "cron", ...hint }, { cause: error });
  }
};

/** The period that holds now, or held until it was deleted. */
export const currentPeriod = ({ periods }: Pick<Automation, "periods">): Period => {
  const last = periods.at(-1);
  if (last === undefined) throw new TypeError("an automation without a schedule");
  return last;
};

const endOf = ({ periods, deletedAtMs }: Automation, index: number): number | undefined =>
  periods[index + 1]?.fromMs ?? deletedAtMs;

/** Its slots: of each period those in it, whatever came after. */
export const scheduleOfAutomation = (automation: Automation): UnionSchedule =>
  unionOf(
    automation.periods.map(({ cron, timezone, fromMs }, index) => {
      const endsAtMs = endOf(automation, index);
      return parseSchedule(cron, {
        timezone,
        startsAtMs: fromMs,
        ...(endsAtMs === undefined ? {} : { endsAtMs }),
      });
    }),
  );

/**
 * Answers for many automations which of their slots are in [fromMs, untilMs), ascending; most of them share a few
 * schedules, and each is read once.
 */
export const slotsIn = (fromMs: number, untilMs: number): ((automation: Automation) => readonly number[]) => {
  const known = new Map<string, readonly number[]>();
  const slotsOf = ({ cron, timezone }: Period): readonly number[] => {
    const name = `${timezone} ${cron}`;
    const slots = known.get(name) ?? [...parseSchedule(cron, { timezone }).slots(fromMs, untilMs)];
    known.set(name, slots);
    return slots;
  };
  return (automation) =>
    automation.periods.flatMap((period, index) => {
      const endMs = endOf(automation, index) ?? Number.POSITIVE_INFINITY;
      return slotsOf(period).filter((slotMs) => slotMs >= period.fromMs && slotMs < endMs);
    });
};

/** The job as the automation has it carried out. The stages and bounds of the job's own schedule are not its. */
export const definitionOf = (automation: Automation, job: JobDefinition): JobDefinition => {
  const { cron, timezone } = currentPeriod(automation);
  const { stages: _stages, startsAtMs: _startsAtMs, endsAtMs: _endsAtMs, ...rest } = job;
  return {
    ...rest,
    subject: automationSubject(automation.id),
    schedules: [cron],
    timezone,
    dst: { gap: "skip", repeat: "first" },
    input: automation.input,
  };
};

/** Undefined for no item, and for one that is no automation. */
export const automationIn = (item: Item | undefined): Automation | undefined => {
  if (typeof item?.["job"] !== "string") return undefined;
  const deletedAtMs = item["deletedAtMs"];
  return {
    id: String(item["sk"]),
    job: item["job"],
    owner: String(item["owner"]),
    input: JSON.parse(String(item["input"])) as Json,
    periods: JSON.parse(String(item["periods"])) as Period[],
    createdAtMs: Number(item["createdAtMs"]),
    revision: Number(item["rev"]),
    ...(typeof deletedAtMs === "number" ? { deletedAtMs } : {}),
  };
};

type Wanted = Omit<Automation, "revision" | "deletedAtMs">;

/** Ids are used once: a deleted one's history is kept under its own. */
export const createAutomation = ({ id, job, owner, input, periods, createdAtMs }: Wanted): Write => ({
  key: automationKey(id),
  condition: absent("job"),
  changes: [
    set("v", ITEM_VERSION),
    set("rev", 1),
    set("job", job),
    set("owner", owner),
    set("input", JSON.stringify(input)),
    set("periods", JSON.stringify(periods)),
    set("createdAtMs", createdAtMs),
  ],
});

const asSeen = ({ id, revision }: Automation): { readonly key: Key; readonly condition: Condition } => ({
  key: automationKey(id),
  condition: all(equals("rev", revision), absent("deletedAtMs")),
});

/** A period never begins before the one that it follows, whosever clock is ahead. */
const nextFromMs = (automation: Automation, nowMs: number): number =>
  Math.max(nowMs, currentPeriod(automation).fromMs + 1);

export const editAutomation = (
  seen: Automation,
  { input, cron, timezone }: { readonly input: Json; readonly cron: string; readonly timezone: string },
  nowMs: number,
): Write => {
  const current = currentPeriod(seen);
  const isSame = current.cron === cron && current.timezone === timezone;
  const next = { cron, timezone, fromMs: nextFromMs(seen, nowMs) };
  const periods = isSame ? seen.periods : [...stillKnown(seen.periods, nowMs), next];
  return {
    ...asSeen(seen),
    changes: [
      set("rev", seen.revision + 1),
      set("input", JSON.stringify(input)),
      set("periods", JSON.stringify(periods)),
    ],
  };
};

/** Nobody looks further back than that. */
const stillKnown = (periods: readonly Period[], nowMs: number): readonly Period[] =>
  periods
    .filter((_, index) => (periods[index + 1]?.fromMs ?? nowMs) > nowMs - OLDEST_DELIVERY_MS)
    .slice(-(KEPT_PERIODS - 1));

export const deleteAutomation = (seen: Automation, nowMs: number): Write => ({
  ...asSeen(seen),
  changes: [
    set("rev", seen.revision + 1),
    set("deletedAtMs", nextFromMs(seen, nowMs)),
    set("expiresAtS", expiresAtS(nowMs)),
  ],
});
