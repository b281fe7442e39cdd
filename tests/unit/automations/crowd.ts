import type { Deps } from "../../../lib/app/deps.ts";
import { watch } from "../../../lib/app/watchdog/watch.ts";
import { openAgenda } from "../../../lib/core/automations/agenda.ts";
import { createAutomation } from "../../../lib/core/automations/automation.ts";
import { slotKeyOf } from "../../../lib/core/identity.ts";
import { AGENDA_KEY, automationKey, runKey } from "../../../lib/core/items.ts";
import { MINUTE_MS, shortIsoOf } from "../../../lib/core/time.ts";
import { applied, type Item, set, type Write } from "../../../lib/core/write.ts";
import type { Table } from "../../../lib/ports/table.ts";
import { msOf, type Setup, setup } from "../../support/path.ts";
import { REPORT } from "./support.ts";

const DUE = 100;
const START = "2026-12-01T11:00:00Z";
/** At these hours only those that are due are; all others at any minute of the rest of the day. */
const QUIET_HOURS = [11, 12, 13];

const idOf = (index: number): string => `m${String(index).padStart(14, "0")}`;

const cronOf = (index: number): string => {
  if (index < DUE) return "0 12,13 * * *";
  const minute = index % 60;
  const hour = (14 + (Math.floor(index / 60) % (24 - QUIET_HOURS.length))) % 24;
  return `${minute} ${hour} * * *`;
};

const memberOf = (index: number): Write =>
  createAutomation({
    id: idOf(index),
    job: REPORT.subject,
    owner: `owner-${index % 10_000}`,
    input: null,
    periods: [{ cron: cronOf(index), timezone: "UTC", fromMs: msOf(START) }],
    createdAtMs: msOf(START),
  });

/** The records of as many automations as are wanted, 100 of them due at noon and at one. */
export const crowd = (count: number): readonly Item[] =>
  Array.from({ length: count }, (_, index) => applied(memberOf(index), undefined));

/** The records of such a crowd are made when they are read: a million of them is three gigabytes. */
export const withCrowd = (table: Table, count: number): Table => {
  const parts = Map.groupBy(
    Array.from({ length: count }, (_, index) => index),
    (index) => automationKey(idOf(index)).pk,
  );
  const isRecord = ({ pk }: { readonly pk: string }): boolean => parts.has(pk);
  const recordOf = (index: number): Item => applied(memberOf(index), undefined);
  return {
    ...table,
    get: async (key, options) =>
      isRecord(key) ? recordOf(Number(key.sk.slice(1))) : table.get(key, options),
    getMany: async (keys) => [
      ...keys.filter(isRecord).map(({ sk }) => recordOf(Number(sk.slice(1)))),
      ...(await table.getMany(keys.filter((key) => !isRecord(key)))),
    ],
    query: async (query) => {
      const part = parts.get(query.pk);
      if (part === undefined) return table.query(query);
      const after = query.first.trim() === "" ? -1 : Number(query.first.slice(1));
      const from = part.findIndex((index) => index > after);
      return from === -1 ? [] : part.slice(from, from + (query.limit ?? part.length)).map(recordOf);
    },
  };
};

/** How often each request was made; of many keys at once also how many. */
export type Requests = { readonly [request: string]: number };

export const counting = (table: Table) => {
  let counts: Record<string, number> = {};
  const count = (name: string, by = 1): void => {
    counts[name] = (counts[name] ?? 0) + by;
  };
  const counted: Table = {
    write: (write) => {
      count("write");
      return table.write(write);
    },
    get: (key, options) => {
      count("get");
      return table.get(key, options);
    },
    getMany: (keys) => {
      count("getMany");
      count("keys", keys.length);
      return table.getMany(keys);
    },
    query: (query) => {
      count("query");
      return table.query(query);
    },
  };
  return {
    counted,
    take: (): Requests => {
      const taken = counts;
      counts = {};
      return taken;
    },
  };
};

const succeed = async (table: Table, slotMs: number): Promise<void> => {
  for (let index = 0; index < DUE; index++) {
    const subject = `automation:${idOf(index)}`;
    await table.write({
      key: runKey({ subject, slotKey: slotKeyOf(slotMs) }),
      changes: [
        set("st", "succeeded"),
        set("ep", 1),
        set("startedAtMs", slotMs),
        set("endedAtMs", slotMs + 5),
      ],
    });
  }
};

const isPlanned = async (table: Table): Promise<boolean> => {
  const agenda = await table.get(AGENDA_KEY, { consistent: true });
  return Number(agenda?.["plannedUntilMs"]) > msOf(START);
};

export interface Cost {
  /** Passes that the walk through all of them took. */
  readonly walkPasses: number;
  /** Pages of all minutes that it wrote. */
  readonly pages: number;
  /** A pass that finds 100 runs which went well. */
  readonly healthy: Requests;
  /** Processor time of that pass. */
  readonly healthyCpuMs: number;
  /** A pass that has to dispatch 100. */
  readonly undelivered: Requests;
  readonly sent: number;
}

/** The requests of the pass that finds 100 due, among all that are in the table. */
export const costOf = async (table: Table): Promise<Cost> => {
  const env: Setup = setup({ now: START, jobs: [REPORT] });
  const { counted, take } = counting(table);
  const deps: Deps = { ...env.deps, table: counted };
  await table.write(openAgenda(env.now()));
  await watch(deps);
  let walkPasses = 1;
  for (; !(await isPlanned(table)); walkPasses++) {
    await env.moveBy(MINUTE_MS);
    await watch(deps);
  }
  const pages = take()["write"] ?? 0;
  const passAt = async (iso: string) => {
    await env.moveTo(shortIsoOf(msOf(iso) + 2 * MINUTE_MS));
    await watch(deps);
    take();
    await env.moveBy(MINUTE_MS);
    const before = process.cpuUsage();
    await watch(deps);
    const { user, system } = process.cpuUsage(before);
    return { requests: take(), cpuMs: (user + system) / 1_000 };
  };
  await succeed(table, msOf("2026-12-01T12:00:00Z"));
  const { requests: healthy, cpuMs: healthyCpuMs } = await passAt("2026-12-01T12:00:00Z");
  const { requests: undelivered } = await passAt("2026-12-01T13:00:00Z");
  return { walkPasses, pages, healthy, healthyCpuMs, undelivered, sent: env.sent.length };
};
