import type { Alert, AlertTopic } from "../../core/alerts/alert.ts";
import {
  claimDelivery,
  closeAlert,
  type Delivery,
  deliveryIn,
  giveUp,
  isClaimedBy,
  isSettled,
  markFailed,
  markTold,
  readAlert,
  setAside,
} from "../../core/alerts/outbox.ts";
import { isQuiet, type QuietHours } from "../../core/alerts/quiet-hours.ts";
import { ANY_ALERT, WAITING_ALERTS } from "../../core/items.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from "../../core/time.ts";
import type { Item } from "../../core/write.ts";
import type { Channel, SendAnswer } from "../../ports/channel.ts";
import type { Deps } from "../deps.ts";
import { repeated } from "../path/repeated.ts";

/** A channel with the topics that it hears of. */
export interface Route {
  readonly channel: Channel;
  readonly topics: readonly AlertTopic[];
}

export interface DeliverDeps extends Pick<Deps, "table" | "clock" | "random" | "journal" | "timings"> {
  readonly routes: readonly Route[];
  readonly quietHours?: QuietHours;
}

/** Well over the time that a message takes: who holds a delivery longer is gone. */
const LEASE_MS = MINUTE_MS;
/** Receivers of chat messages take some 20 a minute from one sender. */
const MESSAGES_PER_PASS = 10;
/** No message begins later in a pass: the notifier has a minute, and the next one begins. */
const PASS_MS = 40 * SECOND_MS;
/** The oldest of the waiting ones, and the newest beside them: a full outbox must not hide what is new. */
const OLDEST = 500;
const NEWEST = 100;
/** What nobody took for so long, nobody needs to hear. */
const GIVE_UP_AFTER_MS = 7 * DAY_MS;
const GIVE_UP_TEST_AFTER_MS = 10 * MINUTE_MS;

const FIRST_WAIT_MS = 30 * SECOND_MS;
const LONGEST_WAIT_REFUSED_MS = HOUR_MS;
/** Even of what a receiver asks for. */
const LONGEST_RETRY_AFTER_MS = DAY_MS;

/** One alert on its way to one channel. */
interface Errand {
  readonly alert: Alert;
  readonly delivery: Delivery | undefined;
}

/** Per alert, the channels that are through with it. */
type Settled = ReadonlyMap<string, Set<string>>;

/**
 * One pass over the outbox: to each channel its waiting alerts in their order, what has waited together in one message.
 * A channel that takes nothing holds up no other, and its alerts stay. Any number of passes at once do no harm:
 * each delivery is claimed before it is sent. An alert is repeated to a channel only when it was sent and its mark
 * was not written.
 * @throws whatever a channel's part of the pass met, after all others have had theirs
 */
export const deliver = async (deps: DeliverDeps): Promise<void> => {
  const waiting = await readWaiting(deps);
  const settled: Settled = new Map(waiting.map(({ alert }) => [alert.id, new Set()]));
  const parts = await Promise.allSettled(
    deps.routes.map(async ({ channel, topics }) => {
      const errands = waiting
        .filter(({ alert }) => topics.includes(alert.topic))
        .map(({ alert, item }): Errand => ({ alert, delivery: deliveryIn(item, channel.name) }));
      await deliverTo(deps, channel, { errands, settled });
    }),
  );
  for (const { alert } of waiting) await close(deps, alert, settled.get(alert.id));
  const failures = parts.flatMap((part) => (part.status === "rejected" ? [part.reason] : []));
  if (failures.length === 1) throw failures[0];
  if (failures.length > 1)
    throw new AggregateError(failures, `${failures.length} channels of this pass failed`);
};

/** One that cannot be read must not keep the others from people. */
const readWaiting = async (
  deps: DeliverDeps,
): Promise<readonly { readonly alert: Alert; readonly item: Item }[]> => {
  const read: { alert: Alert; item: Item }[] = [];
  for (const item of await waitingAlerts(deps)) {
    const alert = readAlert(item);
    if (alert !== undefined) read.push({ alert, item });
    else {
      await deps.table.write(setAside(item, deps.clock.nowMs()));
      deps.journal.notice("error", "alert-untold", { alert: String(item["pk"]), why: "it cannot be read" });
    }
  }
  return read;
};

const waitingAlerts = async ({ table }: DeliverDeps): Promise<readonly Item[]> => {
  const range = { ...ANY_ALERT, pk: WAITING_ALERTS };
  const oldest = await table.query({ ...range, limit: OLDEST });
  if (oldest.length < OLDEST) return oldest;
  const newest = await table.query({ ...range, limit: NEWEST, descending: true });
  const known = new Set(oldest.map((item) => item["pk"]));
  return [...oldest, ...newest.filter((item) => !known.has(item["pk"])).reverse()];
};

/** Through with an alert are all channels of its topic: then it waits no more. */
const close = async (
  deps: DeliverDeps,
  alert: Alert,
  settled: ReadonlySet<string> = new Set(),
): Promise<void> => {
  const names = deps.routes
    .filter(({ topics }) => topics.includes(alert.topic))
    .map(({ channel }) => channel.name);
  if (!names.every((name) => settled.has(name))) return;
  const { written } = await deps.table.write(closeAlert(alert, names));
  if (written && names.length === 0) deps.journal.notice("error", "alert-untold", { alert: alert.id });
};

interface ChannelPart {
  readonly errands: readonly Errand[];
  readonly settled: Settled;
}

const deliverTo = async (deps: DeliverDeps, channel: Channel, part: ChannelPart): Promise<void> => {
  const startMs = deps.clock.nowMs();
  const due = await dueErrands(deps, channel, part);
  const messages = messagesOf(due, channel.alertsPerMessage).slice(0, MESSAGES_PER_PASS);
  for (const message of messages) {
    if (deps.clock.nowMs() - startMs > PASS_MS) return;
    const goesOn = await sendOne(deps, channel, { message, settled: part.settled });
    if (!goesOn) return;
  }
};

/**
 * What can be sent now, in order; nothing while one of the alerts shows that the channel is away, wants to be left
 * alone, or is in the hands of another pass. A refused alert says nothing about the others.
 */
const dueErrands = async (
  deps: DeliverDeps,
  channel: Channel,
  { errands, settled }: ChannelPart,
): Promise<readonly Errand[]> => {
  const nowMs = deps.clock.nowMs();
  const open: Errand[] = [];
  for (const errand of errands) {
    const { alert, delivery } = errand;
    if (isSettled(delivery)) settled.get(alert.id)?.add(channel.name);
    else if (isTooOld(alert, nowMs)) await abandon(deps, channel, { errand, settled });
    else open.push(errand);
  }
  const waits = ({ delivery }: Errand): boolean => delivery !== undefined && delivery.nextAtMs > nowMs;
  if (open.some((errand) => waits(errand) && errand.delivery?.refused !== true)) return [];
  return open.filter((errand) => !waits(errand) && !isHeld(deps, errand.alert, nowMs));
};

const isTooOld = ({ kind, atMs }: Alert, nowMs: number): boolean =>
  nowMs - atMs > (kind === "test" ? GIVE_UP_TEST_AFTER_MS : GIVE_UP_AFTER_MS);

/** Quiet hours hold what can wait; somebody who tests is awake. */
const isHeld = ({ quietHours }: DeliverDeps, { topic, kind }: Alert, nowMs: number): boolean =>
  quietHours !== undefined && topic === "notify" && kind !== "test" && isQuiet(quietHours, nowMs);

const abandon = async (
  { table, clock, journal }: DeliverDeps,
  channel: Channel,
  { errand: { alert, delivery }, settled }: { readonly errand: Errand; readonly settled: Settled },
): Promise<void> => {
  const to = { id: alert.id, channel: channel.name };
  const { attempts, error } = delivery ?? { attempts: 0 };
  const { written } = await table.write(
    giveUp(to, { attempts, ...(error !== undefined && { error }) }, clock.nowMs()),
  );
  if (!written) return;
  settled.get(alert.id)?.add(channel.name);
  journal.notice("error", "alert-given-up", { alert: alert.id, channel: channel.name, why: error ?? null });
};

/** Alerts that go out together. One that was refused goes alone, or it would take the others with it. */
const messagesOf = (due: readonly Errand[], size: number): readonly (readonly Errand[])[] => {
  const messages: Errand[][] = [];
  let open: Errand[] | undefined;
  for (const errand of due) {
    if (errand.delivery?.refused === true) {
      messages.push([errand]);
      open = undefined;
    } else if (open !== undefined && open.length < size) open.push(errand);
    else {
      open = [errand];
      messages.push(open);
    }
  }
  return messages;
};

interface Message {
  readonly message: readonly Errand[];
  readonly settled: Settled;
}

/** May the next message follow? */
const sendOne = async (
  deps: DeliverDeps,
  channel: Channel,
  { message, settled }: Message,
): Promise<boolean> => {
  const owner = deps.random.token();
  const { mine, isFree } = await claimEach(deps, channel, { message, owner, settled });
  if (mine.length === 0) return isFree;
  const answer = await answerOf(
    channel,
    mine.map(({ alert }) => alert),
  );
  await Promise.all(mine.map((errand) => note(deps, channel, { errand, owner, answer })));
  if (answer.kind === "taken") for (const { alert } of mine) settled.get(alert.id)?.add(channel.name);
  return answer.kind !== "not-now" && isFree;
};

interface Claimed {
  readonly mine: readonly Errand[];
  /** Does no other pass hold one of them? What it holds comes first. */
  readonly isFree: boolean;
}

/** Up to the first that another pass holds. */
const claimEach = async (
  { table, clock }: DeliverDeps,
  { name }: Channel,
  { message, owner, settled }: Message & { readonly owner: string },
): Promise<Claimed> => {
  const mine: Errand[] = [];
  for (const errand of message) {
    const { alert, delivery } = errand;
    const attempts = (delivery?.attempts ?? 0) + 1;
    const answer = await table.write(
      claimDelivery({
        id: alert.id,
        channel: name,
        owner,
        attempts,
        nowMs: clock.nowMs(),
        leaseMs: LEASE_MS,
      }),
    );
    const { item } = answer;
    const isMine = answer.written || (item !== undefined && isClaimedBy(item, { channel: name, owner }));
    if (isMine) mine.push(errand);
    else if (item !== undefined && isSettled(deliveryIn(item, name))) settled.get(alert.id)?.add(name);
    else return { mine, isFree: false };
  }
  return { mine, isFree: true };
};

const answerOf = async (channel: Channel, alerts: readonly Alert[]): Promise<SendAnswer> => {
  try {
    return await channel.send(alerts);
  } catch (error) {
    return { kind: "not-now", reason: error instanceof Error ? error.message : String(error) };
  }
};

/**
 * A receiver that says when to come again is believed; others are asked at growing waits. A channel that is away is tried
 * by one alert; all others go as soon as that one is taken.
 */
const waitMsOf = (
  { timings }: DeliverDeps,
  answer: Exclude<SendAnswer, { kind: "taken" }>,
  failures: number,
): number => {
  if (answer.kind === "not-now" && answer.retryAfterMs !== undefined)
    return Math.min(answer.retryAfterMs, LONGEST_RETRY_AFTER_MS);
  const longestMs = answer.kind === "refused" ? LONGEST_WAIT_REFUSED_MS : timings.longestAlertWaitMs;
  return Math.min(FIRST_WAIT_MS * 2 ** Math.min(failures, 20), longestMs);
};

const note = async (
  deps: DeliverDeps,
  channel: Channel,
  { errand, owner, answer }: { readonly errand: Errand; readonly owner: string; readonly answer: SendAnswer },
): Promise<void> => {
  const { table, clock, journal } = deps;
  const { alert, delivery } = errand;
  const to = { id: alert.id, channel: channel.name };
  if (answer.kind === "taken") {
    // The one write whose loss makes a person hear it twice.
    await repeated(() => table.write(markTold(to, clock.nowMs())));
    journal.notice("info", "alert-told", { alert: alert.id, channel: channel.name });
    return;
  }
  const { reason } = answer;
  const nextAtMs = clock.nowMs() + waitMsOf(deps, answer, delivery?.attempts ?? 0);
  await repeated(() =>
    table.write(markFailed({ ...to, owner, error: reason, nextAtMs, refused: answer.kind === "refused" })),
  );
  journal.notice("warn", "alert-not-told", { alert: alert.id, channel: channel.name, why: reason });
};
