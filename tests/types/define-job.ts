/**
 * Checked by `tsc`, never run: what must compile, and, below each `@ts-expect-error`, what must not.
 */
import {
  at,
  defineConfig,
  defineJob,
  every,
  type JobContext,
  type Json,
  monitor,
  PermanentError,
  RetryAfter,
  type Shard,
} from "belfry";
import * as v from "valibot";

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const same = <A, B>(yes: Same<A, B>): void => void yes;

defineJob({ handler: async () => undefined });
defineJob({
  schedule: [every("15 minutes"), at("2027-01-01T00:00"), "0 9 * * 1-5"],
  retry: { ladder: ["1 minute", "5 minutes"], crashes: 1 },
  misfire: { policy: "all", within: "2 hours" },
  handler: async ({ skip, snooze, signal, remaining, log, slot }) => {
    log.info("at", { slot, left: remaining() });
    if (signal.aborted) throw new RetryAfter("90 seconds", "busy", { cause: signal.reason });
    if (slot.getTime() === 0) throw new PermanentError("no");
    return Math.random() > 0.5 ? skip("nothing") : snooze("10 minutes");
  },
});

// Without input and schema the input is any JSON; with one of them it has that type.
defineJob({ handler: (ctx) => same<typeof ctx, JobContext<Json>>(true) });
defineJob({ input: { days: 30 }, handler: ({ input }) => same<typeof input, { days: number }>(true) });
const schema = v.object({ days: v.optional(v.number(), 30), at: v.pipe(v.string(), v.transform(Number)) });
defineJob({
  schema,
  input: { at: "1" },
  handler: ({ input }) => same<typeof input, { days: number; at: number }>(true),
});

defineJob({
  timeout: "10 minutes",
  handler: async ({ checkpoint, continueLater, remaining, progress, once, idempotencyKey }) => {
    let done = (await checkpoint.load<number>()) ?? 0;
    const id: string = await once("mail", async () => idempotencyKey("mail"));
    const unread = await checkpoint.load();
    same<typeof unread, Json | undefined>(true);
    while (done < 100) {
      if (remaining() < 30_000) return continueLater(done);
      progress(++done, 100);
      await checkpoint.save(done);
    }
    return { done, id };
  },
});
// Each shard has what its list gives it; a number of shards gives none.
defineJob({ handler: ({ shard }) => same<typeof shard, undefined>(true) });
defineJob({ shards: 16, handler: ({ shard }) => same<typeof shard, Shard<undefined>>(true) });
defineJob({ shards: () => ["eu"], handler: ({ shard }) => same<typeof shard, Shard<undefined>>(true) });
defineJob({
  shards: async () => [{ key: "eu", input: 1 }],
  handler: ({ shard }) => same<typeof shard, Shard<number>>(true),
});
defineJob({
  input: { days: 30 },
  shards: async function* ({ input }) {
    yield { key: "one", input: { id: input.days } };
  },
  maxInFlight: 10,
  toleratedFailures: "2 %",
  handler: ({ shard, input }) => {
    same<typeof shard, Shard<{ id: number }>>(true);
    return shard.input.id + input.days;
  },
  join: ({ shards, input }) => shards.done + input.days,
});
defineJob({
  shards: async ({ skip }) => (Math.random() > 0.5 ? ["eu", "us"] : skip("nothing to do")),
  handler: ({ shard }) => shard.key.toUpperCase(),
});
// @ts-expect-error an entry without a key
defineJob({ shards: () => [{ input: 1 }], handler: () => 1 });
// @ts-expect-error a share is a text with a percent sign
defineJob({ shards: 4, toleratedFailures: "some", handler: () => 1 });
// @ts-expect-error a key is a text
defineJob({ handler: ({ once }) => once(1, () => 1) });

// @ts-expect-error a handler is required
defineJob({ schedule: "0 9 * * *" });
// @ts-expect-error an option that does not exist
defineJob({ timout: "5 minutes", handler: () => 1 });
// @ts-expect-error a number is no duration
defineJob({ timeout: 300, handler: () => 1 });
// @ts-expect-error neither is a text without a unit that exists
defineJob({ timeout: "5 mins", handler: () => 1 });
defineJob({ timezone: "Asia/Shanghai", handler: () => 1 });
defineJob({ timezone: "US/Eastern", handler: () => 1 });
// @ts-expect-error a zone name that does not exist
defineJob({ timezone: "Europe/Berln", handler: () => 1 });
// @ts-expect-error neither is an abbreviation
defineJob({ timezone: "PST", handler: () => 1 });
// @ts-expect-error nor an offset
defineJob({ timezone: "+02:00", handler: () => 1 });
// @ts-expect-error nor a text that could be anything
defineJob({ timezone: "Europe/Berlin" as string, handler: () => 1 });
defineJob({ overlap: "queue", handler: () => 1 });
defineJob({ overlap: { max: 2, whenFull: "queue" }, handler: () => 1 });
// @ts-expect-error a policy that does not exist
defineJob({ overlap: "wait", handler: () => 1 });
// @ts-expect-error a word that is no policy
defineJob({ misfire: "sometimes", handler: () => 1 });
// @ts-expect-error an option of retry that does not exist
defineJob({ retry: { attempts: 3 }, handler: () => 1 });
// @ts-expect-error input that the schema does not take
defineJob({ schema, input: { at: 1 }, handler: () => 1 });
// @ts-expect-error a handler that takes another input than the schema gives
defineJob({ schema, handler: ({ input }: JobContext<{ days: string }>) => input.days });
// @ts-expect-error the schema gives no such field
defineJob({ schema, handler: ({ input }) => input.hours });
// @ts-expect-error a handler that takes another input than the job's own
defineJob({ input: { days: 30 }, handler: ({ input }: JobContext<{ days: string }>) => input.days });
// @ts-expect-error the context has no such thing
defineJob({ handler: ({ progres }) => progres });
// @ts-expect-error no duration
new RetryAfter(90);

defineConfig({ stages: ["dev"], pools: { slow: { memory: 512, concurrency: 2 } } });
// @ts-expect-error memory is a number of megabytes
defineConfig({ pools: { slow: { memory: "512 MB" } } });
// @ts-expect-error an option that does not exist
defineConfig({ stage: ["dev"] });

// A monitor has a schedule and no handler; nothing here runs it, so nothing says how.
monitor({ schedule: "0 2 * * *", timezone: "Asia/Shanghai", early: "10 minutes", endWithin: "3 hours" });
// @ts-expect-error without a schedule no ping is expected
monitor({ owner: "team-a" });
// @ts-expect-error it runs elsewhere
monitor({ schedule: "0 2 * * *", handler: () => undefined });
// @ts-expect-error it runs elsewhere
monitor({ schedule: "0 2 * * *", retry: { retries: 1 } });
