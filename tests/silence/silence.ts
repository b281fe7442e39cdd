/**
 * `npm run silence -- [--zones N] [--days N] [--seed N] [--json]`: plays jobs of every period in zones that change their
 * clocks, with the real dispatcher, worker and watchdog, and injects silences. Healthy = nothing is told; each silence =
 * one alert within its grace and two minutes, and one recovery. Exit 1 where that does not hold.
 */
import { parseArgs } from "node:util";
import { ZONES } from "./jobs.ts";
import { playZone } from "./play.ts";

const { values } = parseArgs({
  options: {
    zones: { type: "string", default: String(ZONES.length) },
    days: { type: "string", default: "730" },
    seed: { type: "string", default: "1" },
    json: { type: "boolean", default: false },
  },
});

const [days, seed] = [Number(values.days), Number(values.seed)];
const startedMs = performance.now();
const totals = {
  zones: 0,
  days,
  seed,
  silences: 0,
  told: 0,
  inPause: 0,
  madeGood: 0,
  longestAfterGraceS: 0,
  passes: 0,
};
const wrong: string[] = [];

for (const zone of ZONES.slice(0, Number(values.zones))) {
  const played = await playZone({ zone, seed, days });
  totals.zones += 1;
  totals.silences += played.silences;
  totals.told += played.told;
  totals.inPause += played.inPause;
  totals.madeGood += played.madeGood;
  totals.passes += played.passes;
  totals.longestAfterGraceS = Math.max(totals.longestAfterGraceS, played.longestMs / 1_000);
  wrong.push(...played.wrong);
  for (const line of played.wrong) process.stderr.write(`${line}\n`);
  if (!values.json)
    process.stdout.write(
      `${zone}: ${played.silences} silences, ${played.told} told, ${played.wrong.length} wrong\n`,
    );
}

const tookS = Math.round((performance.now() - startedMs) / 100) / 10;
const answer = { ...totals, wrong: wrong.length, tookS };
process.stdout.write(`${JSON.stringify(answer)}\n`);
process.exitCode = wrong.length === 0 ? 0 : 1;
