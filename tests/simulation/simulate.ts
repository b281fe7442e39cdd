/**
 * `npm run simulate -- [--seeds N] [--first N] [--slots N] [--stop] [--no-trace] [--json]`: plays the deployment under seeded
 * faults, each seed with the next overlap policy, a sixth of them without a watchdog, a fifth with a backfill, a
 * seventh with clocks that differ by minutes, a twentieth with run-time schedules. Exit 1 when a promise was broken; the seed and what broke are printed, and
 * `--seeds 1 --first SEED` plays the same story again. `--stop` ends at the first of them.
 */
import { parseArgs } from "node:util";
import { FAULT_KINDS } from "../../lib/simulation/process.ts";
import { playAutomations } from "./automations.ts";
import { brokenIn, brokenStory, type Play } from "./broken-story.ts";
import { ANSWERS_AND_DUPLICATES, EVERY_FAULT, type Played, POLICIES, type Policy, play } from "./scenario.ts";

const { values } = parseArgs({
  allowNegative: true,
  options: {
    seeds: { type: "string", default: "2000" },
    first: { type: "string", default: "1" },
    slots: { type: "string", default: "100" },
    stop: { type: "boolean", default: false },
    trace: { type: "boolean", default: true },
    json: { type: "boolean", default: false },
  },
});

const PORTS = [
  "table.write",
  "table.get",
  "table.getMany",
  "table.query",
  "queue.send",
  "queue.sendBatch",
] as const;

/** What goes wrong elsewhere than at the call of a port. */
const AROUND = [
  ["duplicate", "queue"],
  ["early-visibility", "queue"],
  ["duplicate-event", "schedule"],
  ["late-event", "schedule"],
  ["very-late-event", "schedule"],
  ["dropped-event", "schedule"],
  ["killed-at-limit", "handler"],
] as const;

/** Cells of the table that no story can hit, and why. */
const IMPOSSIBLE: { readonly [cell: string]: string } = {};

const totals = { seeds: 0, occurrences: 0, faults: 0, lost: 0, doubled: 0, stuck: 0 };
/** `<kind> <port> <policy>` -> how often. */
const hits = new Map<string, number>();
let inFlight = 0;
let deploysInFlight = 0;
let skewedSeeds = 0;

const scenarioOf = (seed: number, policy: Policy) => {
  const watchdog = Math.floor(seed / POLICIES.length) % 6 !== 0;
  const faults = watchdog ? EVERY_FAULT : ANSWERS_AND_DUPLICATES;
  const deploys = watchdog && Math.floor(seed / POLICIES.length) % 4 === 2;
  const skewed = watchdog && Math.floor(seed / POLICIES.length) % 7 === 3;
  const series = Math.floor(seed / POLICIES.length) % 5 === 1;
  return {
    seed,
    policy,
    faults,
    watchdog,
    slots: Number(values.slots),
    operators: watchdog,
    deploys,
    skewed,
    series,
  };
};

/** Some stories are about run-time schedules. */
const automates = (seed: number): boolean => Math.floor(seed / POLICIES.length) % 20 === 1;

const count = (policy: Policy, { world, verdict, occurrences }: Played): void => {
  totals.seeds += 1;
  totals.occurrences += occurrences;
  for (const kind of ["lost", "doubled", "stuck"] as const) totals[kind] += verdict[kind].length;
  for (const [name, times] of world.hits) {
    totals.faults += times;
    const cell = `${name} ${policy.name}`;
    hits.set(cell, (hits.get(cell) ?? 0) + times);
  }
  if (world.interrupted() > 0) inFlight += 1;
  deploysInFlight += world.deploysInFlight();
};

const printTable = (): readonly string[] => {
  const empty: string[] = [];
  const atPorts = FAULT_KINDS.flatMap((kind) => PORTS.map((port) => [kind, port] as const));
  for (const [kind, where] of [...atPorts, ...AROUND]) {
    const cells = POLICIES.map(({ name }) => hits.get(`${kind} ${where} ${name}`) ?? 0);
    console.error(`${`${kind} at ${where}`.padEnd(34)} ${cells.map((n) => String(n).padStart(8)).join("")}`);
    for (const [index, times] of cells.entries()) {
      const cell = `${kind} ${where} ${POLICIES[index]?.name}`;
      if (times === 0 && IMPOSSIBLE[cell] === undefined) empty.push(cell);
    }
  }
  return empty;
};

/** The shortest story of the seed that breaks a promise, and what happened to the first run that it names. */
const tellStory = async (seed: number, policy: Policy): Promise<void> => {
  if (automates(seed)) return;
  const playSome: Play = (slots, trace) =>
    play({ ...scenarioOf(seed, policy), slots, ...(trace && { trace }) });
  const story = await brokenStory(playSome, Number(values.slots));
  if (story === undefined) return;
  console.error(`  again by: npm run simulate -- --seeds 1 --first ${seed} --slots ${story.slots}`);
  console.error(`  ${story.broken[0]}:\n    ${story.lines.join("\n    ")}`);
};

const first = Number(values.first);
for (let seed = first; seed < first + Number(values.seeds); seed++) {
  const policy = POLICIES[seed % POLICIES.length];
  if (policy === undefined) continue;
  const played = automates(seed)
    ? await playAutomations({ seed, policy, faults: EVERY_FAULT, hours: Math.min(60, Number(values.slots)) })
    : await play(scenarioOf(seed, policy));
  if (!automates(seed) && scenarioOf(seed, policy).skewed) skewedSeeds += 1;
  count(policy, played);
  const broken = brokenIn(played.verdict);
  if (broken.length > 0) {
    console.error(`seed ${seed}, overlap ${policy.name}:\n  ${broken.join("\n  ")}`);
    if (values.trace) await tellStory(seed, policy);
  }
  if (broken.length > 0 && values.stop) break;
  if (totals.seeds % 100 === 0) console.error(`${totals.seeds} seeds, ${totals.occurrences} occurrences`);
}

console.error(`times hit, by overlap policy: ${POLICIES.map(({ name }) => name).join(" | ")}`);
const empty = printTable();
// A few seeds cannot hit everything.
const isLong = totals.seeds >= 600;
if (isLong && empty.length > 0) console.error(`never hit: ${empty.join("; ")}`);
console.error(`${inFlight} of ${totals.seeds} seeds interrupted a run in flight`);
console.error(`${deploysInFlight} deploys changed or removed a job while a run of it was on its way`);
console.error(`${skewedSeeds} of them with clocks that differ by minutes`);
console.log(
  values.json
    ? JSON.stringify(totals)
    : `${totals.occurrences} occurrences over ${totals.seeds} seeds, ${totals.faults} faults: ` +
        `${totals.lost} lost, ${totals.doubled} doubled, ${totals.stuck} stuck`,
);
const broken = totals.lost + totals.doubled + totals.stuck > 0;
const enough = !isLong || (empty.length === 0 && inFlight * 2 > totals.seeds);
process.exitCode = broken || !enough ? 1 : 0;
