import { createHmac } from "node:crypto";
import { SNSClient } from "@aws-sdk/client-sns";
import { expect, test } from "vitest";
import type { ChannelDeps } from "../../../lib/adapters/channels/channel-deps.ts";
import { dingTalkChannel } from "../../../lib/adapters/channels/dingtalk.ts";
import { emailChannel } from "../../../lib/adapters/channels/email.ts";
import { feishuChannel } from "../../../lib/adapters/channels/feishu.ts";
import { pagerDutyChannel } from "../../../lib/adapters/channels/pagerduty.ts";
import { slackChannel } from "../../../lib/adapters/channels/slack.ts";
import { webhookChannel } from "../../../lib/adapters/channels/webhook.ts";
import { weComChannel } from "../../../lib/adapters/channels/wecom.ts";
import type { Alert } from "../../../lib/core/alerts/alert.ts";
import type { Channel } from "../../../lib/ports/channel.ts";
import { msOf } from "../../support/path.ts";
import { type HttpReceiver, httpReceiver } from "./http-receiver.ts";

const nowMs = msOf("2026-10-08T02:06:30.250Z");

const alert: Alert = {
  id: "report~3",
  topic: "page",
  kind: "failing",
  atMs: msOf("2026-10-08T02:06:00Z"),
  reason: "it failed 3 times in a row",
  job: "daily-report",
  owner: "reports@example.com",
  runbook: "https://wiki.example.com/daily-report",
  slotMs: msOf("2026-10-08T01:00:00Z"),
  timezone: "Asia/Shanghai",
  runId: "daily-report~20261008T010000Z",
  error: { name: "TypeError", message: "<@everyone> & no\nrows" },
  count: 3,
};
const second: Alert = { ...alert, id: "report~4", kind: "recovered", reason: "its last run succeeded" };

const depsWith = (secrets: { readonly [variable: string]: string }): ChannelDeps => ({
  context: { stage: "prod", link: "https://jobs.example.com/{stage}/{runId}" },
  clock: { nowMs: () => nowMs },
  secret: async (variable) => secrets[variable] ?? "",
});

const FACTS = [
  "Why: it failed 3 times in a row",
  "Slot: 2026-10-08 09:00 Asia/Shanghai (2026-10-08T01:00:00Z)",
  "Run: daily-report~20261008T010000Z",
  "At: 2026-10-08 10:06 Asia/Shanghai (2026-10-08T02:06:00Z)",
  "Owner: reports@example.com",
  "Runbook: https://wiki.example.com/daily-report",
  "More: https://jobs.example.com/prod/daily-report~20261008T010000Z",
];
const TITLE = "[prod] daily-report failed 3 times in a row";

const bodyAt = ({ received }: HttpReceiver, i = 0): Record<string, unknown> =>
  JSON.parse(received[i]?.body ?? "null");

/** Every chat robot on the receiver, with a signing key where it has one. */
const CHATS: readonly {
  readonly kind: string;
  readonly make: (deps: ChannelDeps) => Channel;
  readonly ok: string;
  readonly textOf: (body: Record<string, unknown>) => unknown;
}[] = [
  {
    kind: "slack",
    make: (deps) => slackChannel(deps, { name: "slack", webhook: "URL" }),
    ok: "ok",
    textOf: (body) => body["text"],
  },
  {
    kind: "dingtalk",
    make: (deps) => dingTalkChannel(deps, { name: "dingtalk", webhook: "URL", sign: "KEY" }),
    ok: '{"errcode":0,"errmsg":"ok"}',
    textOf: (body) => Reflect.get(Object(body["markdown"]), "text"),
  },
  {
    kind: "wecom",
    make: (deps) => weComChannel(deps, { name: "wecom", webhook: "URL" }),
    ok: '{"errcode":0,"errmsg":"ok"}',
    textOf: (body) => Reflect.get(Object(body["markdown"]), "content"),
  },
  {
    kind: "feishu",
    make: (deps) => feishuChannel(deps, { name: "feishu", webhook: "URL", sign: "KEY" }),
    ok: '{"code":0,"msg":"success","data":{}}',
    textOf: (body) => JSON.stringify(Reflect.get(Object(body["content"]), "post")),
  },
];

const onReceiver = async ({ make, ok }: (typeof CHATS)[number]) => {
  const receiver = await httpReceiver(ok);
  return {
    receiver,
    channel: make(depsWith({ URL: `${receiver.address}/hook?access_token=t`, KEY: "SECabc" })),
  };
};

test.each(CHATS)(
  "$kind gets one POST of JSON with all that is known, and its answer counts as taken",
  async (chat) => {
    const { receiver, channel } = await onReceiver(chat);
    expect(await channel.send([alert])).toEqual({ kind: "taken" });
    expect(receiver.received).toHaveLength(1);
    expect(receiver.received[0]).toMatchObject({
      method: "POST",
      headers: { "content-type": "application/json; charset=utf-8" },
    });
    const text = chat.textOf(bodyAt(receiver));
    for (const line of [TITLE, ...FACTS]) expect(text).toContain(line);
  },
);

test.each(CHATS)("$kind is told several alerts in one message, each of them however long", async (chat) => {
  const { receiver, channel } = await onReceiver(chat);
  const long = { ...alert, reason: "长".repeat(900), error: { name: "E", message: "<".repeat(900) } };
  const many = Array.from({ length: 10 }, (_, i) => ({ ...long, job: `job-${i}` }));
  expect(await channel.send(many)).toEqual({ kind: "taken" });
  const text = chat.textOf(bodyAt(receiver));
  for (const { job } of many) expect(text).toContain(`[prod] ${job} failed`);
  const limit = chat.kind === "wecom" ? 4_096 : chat.kind === "slack" ? 40_000 : 20_000;
  expect(Buffer.byteLength(String(text))).toBeLessThanOrEqual(limit);
});

test.each(CHATS)("$kind that cannot be reached is away, and its secret address is not told", async (chat) => {
  const { receiver, channel } = await onReceiver(chat);
  await receiver.close();
  await expect(channel.send([alert])).rejects.toThrow(/^no answer: ECONNREFUSED$/);
});

test.each(CHATS)("$kind: 503 with Retry-After is away for as long as it says", async (chat) => {
  const { receiver, channel } = await onReceiver(chat);
  receiver.answers.push({ status: 503, headers: { "retry-after": "120" } }, { status: 500, body: "oops" });
  expect(await channel.send([alert])).toEqual({ kind: "not-now", reason: "HTTP 503", retryAfterMs: 120_000 });
  expect(await channel.send([alert])).toEqual({ kind: "not-now", reason: "HTTP 500: oops" });
});

test.each(CHATS)("$kind: a redirect is not followed", async (chat) => {
  const { receiver, channel } = await onReceiver(chat);
  const other = await httpReceiver(chat.ok);
  receiver.answers.push({ status: 307, headers: { location: other.address } });
  expect(await channel.send([alert])).toMatchObject({ kind: "not-now", reason: "HTTP 307" });
  expect(other.received).toEqual([]);
});

test.each(CHATS)("$kind: a secret that is no https address is named, and not shown", async ({ make }) => {
  const channel = make(depsWith({ URL: "http://203.0.113.9/hush", KEY: "SECabc" }));
  await expect(channel.send([alert])).rejects.toThrow(/^the secret URL holds no https address$/);
});

test("an error that the reason tells already is not told twice", async () => {
  const [slack] = CHATS;
  if (slack === undefined) throw new TypeError("no chat");
  const { receiver, channel } = await onReceiver(slack);
  await channel.send([
    {
      ...alert,
      reason: "the run is dead: TypeError: no rows",
      error: { name: "TypeError", message: "no rows" },
    },
  ]);
  expect(bodyAt(receiver)["text"]).toContain("Why: the run is dead: TypeError: no rows");
  expect(bodyAt(receiver)["text"]).not.toContain("Error: TypeError");
});

test("Slack's control characters are escaped, and line ends of an error do not break its line", async () => {
  const [slack] = CHATS;
  if (slack === undefined) throw new TypeError("no chat");
  const { receiver, channel } = await onReceiver(slack);
  await channel.send([alert]);
  expect(bodyAt(receiver)["text"]).toContain("Error: TypeError: &lt;@everyone&gt; &amp; no rows");
});

test.each([
  [429, "rate limited", { kind: "not-now", reason: "HTTP 429: rate limited", retryAfterMs: 30_000 }],
  [400, "invalid_payload", { kind: "refused", reason: "HTTP 400: invalid_payload" }],
  [404, "no_service", { kind: "not-now", reason: "HTTP 404: no_service" }],
  [410, "channel_is_archived", { kind: "not-now", reason: "HTTP 410: channel_is_archived" }],
])("Slack's %i %s", async (status, body, expected) => {
  const receiver = await httpReceiver("ok");
  const channel = slackChannel(depsWith({ URL: receiver.address }), { name: "slack", webhook: "URL" });
  receiver.answers.push({ status, body, ...(status === 429 && { headers: { "retry-after": "30" } }) });
  expect(await channel.send([alert])).toEqual(expected);
});

test("DingTalk's address carries the time in milliseconds and its signature by the robot's key", async () => {
  const receiver = await httpReceiver('{"errcode":0,"errmsg":"ok"}');
  const deps = depsWith({ URL: `${receiver.address}/robot/send?access_token=t`, KEY: "SECabc" });
  await dingTalkChannel(deps, { name: "dingtalk", webhook: "URL", sign: "KEY" }).send([alert]);
  const { searchParams } = receiver.received[0]?.url ?? new URL("http://none");
  expect(Object.fromEntries(searchParams)).toEqual({
    access_token: "t",
    timestamp: String(nowMs),
    sign: createHmac("sha256", "SECabc").update(`${nowMs}\nSECabc`).digest("base64"),
  });
  expect(bodyAt(receiver)).toMatchObject({ msgtype: "markdown", markdown: { title: TITLE } });
});

test("Feishu's body carries the time in seconds and a signature of nothing by both", async () => {
  const receiver = await httpReceiver('{"code":0,"msg":"success"}');
  const deps = depsWith({ URL: receiver.address, KEY: "hush" });
  await feishuChannel(deps, { name: "feishu", webhook: "URL", sign: "KEY" }).send([alert]);
  const timestamp = String(Math.floor(nowMs / 1_000));
  expect(bodyAt(receiver)).toMatchObject({
    timestamp,
    sign: createHmac("sha256", `${timestamp}\nhush`).update("").digest("base64"),
    msg_type: "post",
    content: { post: { en_us: { title: TITLE } } },
  });
});

test("robots without a signing key are sent none", async () => {
  const receiver = await httpReceiver('{"code":0,"errcode":0}');
  const deps = depsWith({ URL: receiver.address });
  await dingTalkChannel(deps, { name: "dingtalk", webhook: "URL" }).send([alert]);
  await feishuChannel(deps, { name: "feishu", webhook: "URL" }).send([alert]);
  expect(receiver.received[0]?.url.search).toBe("");
  expect(bodyAt(receiver, 1)).not.toHaveProperty("sign");
});

test("WeCom's text holds no tag that would mention somebody", async () => {
  const receiver = await httpReceiver('{"errcode":0}');
  await weComChannel(depsWith({ URL: receiver.address }), { name: "wecom", webhook: "URL" }).send([alert]);
  expect(receiver.received[0]?.body).not.toContain("<");
});

test.each([
  [
    "dingtalk",
    { errcode: 310000, errmsg: "sign not match" },
    { kind: "not-now", reason: "code 310000: sign not match" },
  ],
  [
    "dingtalk",
    { errcode: 130101, errmsg: "send too fast" },
    { kind: "not-now", reason: "code 130101: send too fast", retryAfterMs: 600_000 },
  ],
  ["dingtalk", { errcode: 460101, errmsg: "too long" }, { kind: "refused", reason: "code 460101: too long" }],
  [
    "wecom",
    { errcode: 45009, errmsg: "api freq out of limit" },
    { kind: "not-now", reason: "code 45009: api freq out of limit", retryAfterMs: 60_000 },
  ],
  [
    "wecom",
    { errcode: 93000, errmsg: "invalid webhook url" },
    { kind: "not-now", reason: "code 93000: invalid webhook url" },
  ],
  ["wecom", { errcode: 40058, errmsg: "too long" }, { kind: "refused", reason: "code 40058: too long" }],
  [
    "feishu",
    { code: 19021, msg: "sign match fail" },
    { kind: "not-now", reason: "code 19021: sign match fail" },
  ],
  [
    "feishu",
    { code: 11232, msg: "frequency limited" },
    { kind: "not-now", reason: "code 11232: frequency limited", retryAfterMs: 60_000 },
  ],
  ["feishu", { code: 9499, msg: "Bad Request" }, { kind: "refused", reason: "code 9499: Bad Request" }],
  ["dingtalk", {}, { kind: "not-now", reason: "an answer that is none of theirs" }],
  ["feishu", "<html>", { kind: "not-now", reason: "an answer that is none of theirs" }],
])("%s: %j in the body of HTTP 200 is no success", async (kind, body, expected) => {
  const chat = CHATS.find((one) => one.kind === kind);
  if (chat === undefined) throw new TypeError(kind);
  const { receiver, channel } = await onReceiver(chat);
  receiver.answers.push({ body: typeof body === "string" ? body : JSON.stringify(body) });
  expect(await channel.send([alert])).toEqual(expected);
});

test("PagerDuty gets a trigger with the job's key, and a resolve under the same key when it is well again", async () => {
  const receiver = await httpReceiver('{"status":"success","dedup_key":"k","message":"Event processed"}');
  const deps = depsWith({ PAGER: "R0123456789\n" });
  const channel = pagerDutyChannel(deps, { name: "pagerduty", routingKey: "PAGER" }, receiver.address);
  expect(channel.alertsPerMessage).toBe(1);
  receiver.answers.push({ status: 202 });
  expect(await channel.send([alert])).toEqual({ kind: "taken" });
  await channel.send([second]);
  expect(bodyAt(receiver)).toMatchObject({
    routing_key: "R0123456789",
    event_action: "trigger",
    dedup_key: "belfry/prod/job/daily-report",
    payload: {
      summary: `${TITLE}: it failed 3 times in a row`,
      source: "belfry/prod",
      severity: "critical",
      timestamp: "2026-10-08T02:06:00.000Z",
      component: "daily-report",
      class: "failing",
      custom_details: { Run: "daily-report~20261008T010000Z" },
    },
    links: [
      { href: "https://jobs.example.com/prod/daily-report~20261008T010000Z", text: "Run" },
      { href: "https://wiki.example.com/daily-report", text: "Runbook" },
    ],
  });
  expect(bodyAt(receiver, 1)).toEqual({
    routing_key: "R0123456789",
    event_action: "resolve",
    dedup_key: "belfry/prod/job/daily-report",
  });
});

test("an alarm that is over resolves the incident of that alarm", async () => {
  const receiver = await httpReceiver("{}");
  const channel = pagerDutyChannel(
    depsWith({ PAGER: "R" }),
    { name: "pagerduty", routingKey: "PAGER" },
    receiver.address,
  );
  const alarm = {
    id: "x",
    topic: "page",
    atMs: nowMs,
    reason: "r",
    alarm: "notes-prod-watchdog-silent",
  } as const;
  await channel.send([{ ...alarm, kind: "alarm" }]);
  await channel.send([{ ...alarm, kind: "alarm-over" }]);
  expect([bodyAt(receiver), bodyAt(receiver, 1)]).toMatchObject([
    { event_action: "trigger", dedup_key: "belfry/prod/notes-prod-watchdog-silent" },
    { event_action: "resolve", dedup_key: "belfry/prod/notes-prod-watchdog-silent" },
  ]);
});

/** The key of each alert that PagerDuty was sent, with what became of the incident. */
const incidents = async (...alerts: readonly Alert[]): Promise<readonly string[]> => {
  const receiver = await httpReceiver("{}");
  const options = { name: "pagerduty", routingKey: "PAGER" };
  const channel = pagerDutyChannel(depsWith({ PAGER: "R" }), options, receiver.address);
  for (const each of alerts) await channel.send([each]);
  return receiver.received.map(({ body }) => {
    const { event_action, dedup_key, payload } = JSON.parse(body);
    const hint = payload?.custom_details.Incident === undefined ? "" : ", to be resolved by hand";
    return `${event_action} ${dedup_key}${hint}`;
  });
};

const ofJob = { topic: "notify", atMs: nowMs, reason: "r", job: "daily-report" } as const;

test("news that nothing will end is an incident of its own in PagerDuty, neither shared with the job's nor with the next", async () => {
  const slow = { ...ofJob, kind: "slow", passing: true } as const;
  expect(
    await incidents(
      { ...ofJob, kind: "failed", id: "flip~daily-report~1" },
      { ...slow, id: "flip~daily-report~2" },
      { ...slow, id: "flip~daily-report~3" },
      { ...ofJob, kind: "recovered", id: "flip~daily-report~4" },
    ),
  ).toEqual([
    "trigger belfry/prod/job/daily-report",
    "trigger belfry/prod/flip~daily-report~2, to be resolved by hand",
    "trigger belfry/prod/flip~daily-report~3, to be resolved by hand",
    "resolve belfry/prod/job/daily-report",
  ]);
});

test("a job that is renamed while something is wrong has its incident resolved under its new name", async () => {
  const failed = { ...ofJob, kind: "failed", id: "flip~daily-report~1" } as const;
  const renamed = { ...ofJob, job: "report", subject: "daily-report" } as const;
  expect(await incidents(failed, { ...renamed, kind: "recovered", id: "flip~daily-report~2" })).toEqual([
    "trigger belfry/prod/job/daily-report",
    "resolve belfry/prod/job/daily-report",
  ]);
});

test("a job that is removed has its incident resolved, as by a recovery", async () => {
  const failed = { ...ofJob, kind: "failed", id: "flip~daily-report~1" } as const;
  expect(await incidents(failed, { ...ofJob, kind: "removed", id: "flip~daily-report~2" })).toEqual([
    "trigger belfry/prod/job/daily-report",
    "resolve belfry/prod/job/daily-report",
  ]);
});

test("what is about no job and no alarm is told each time: two outages of the watchdog are two incidents", async () => {
  const back = { topic: "notify", kind: "watchdog-back", atMs: nowMs, reason: "r" } as const;
  const stray = { topic: "notify", kind: "alarm", atMs: nowMs, reason: "r" } as const;
  expect(
    await incidents(
      { ...back, id: "watchdog-back~1" },
      { ...back, id: "watchdog-back~2" },
      { ...stray, id: "sns~1" },
      { ...stray, id: "sns~2" },
    ),
  ).toEqual(
    ["watchdog-back~1", "watchdog-back~2", "sns~1", "sns~2"].map(
      (id) => `trigger belfry/prod/${id}, to be resolved by hand`,
    ),
  );
});

test("each run-time schedule of a job has its own incident, which another's recovery leaves open", async () => {
  const failed = { ...ofJob, kind: "failed" } as const;
  expect(
    await incidents(
      { ...failed, id: "1", automation: "a1" },
      { ...failed, id: "2", automation: "a2" },
      { ...ofJob, kind: "recovered", id: "3", automation: "a1" },
    ),
  ).toEqual([
    "trigger belfry/prod/automation/a1",
    "trigger belfry/prod/automation/a2",
    "resolve belfry/prod/automation/a1",
  ]);
});

/** As docs/alerts.md says, and Standard Webhooks: written here once more, as a receiver would. */
const isSigned = ({ received }: HttpReceiver, key: Buffer): boolean => {
  const [request] = received;
  const content = `${request?.headers["webhook-id"]}.${request?.headers["webhook-timestamp"]}.${request?.body}`;
  return (
    request?.headers["webhook-signature"] ===
    `v1,${createHmac("sha256", key).update(content).digest("base64")}`
  );
};

test.each([
  ["a text", "a-key-of-more-than-24-bytes-in-all", Buffer.from("a-key-of-more-than-24-bytes-in-all")],
  ["base64 after whsec_", `whsec_${Buffer.alloc(32, 7).toString("base64")}`, Buffer.alloc(32, 7)],
])("a webhook's body is signed with its id and time, by %s", async (_what, secret, key) => {
  const receiver = await httpReceiver();
  const deps = depsWith({ URL: receiver.address, KEY: secret });
  const channel = webhookChannel(deps, { name: "webhook", url: "URL", secret: "KEY" });
  receiver.answers.push({ status: 204 });
  expect(await channel.send([alert])).toEqual({ kind: "taken" });
  expect(isSigned(receiver, key)).toBe(true);
  expect(receiver.received[0]?.headers).toMatchObject({
    "webhook-id": "report~3",
    "webhook-timestamp": String(Math.floor(nowMs / 1_000)),
  });
  expect(bodyAt(receiver)).toEqual({
    version: 1,
    stage: "prod",
    id: "report~3",
    topic: "page",
    kind: "failing",
    at: "2026-10-08T02:06:00Z",
    title: TITLE,
    reason: alert.reason,
    job: "daily-report",
    owner: alert.owner,
    runbook: alert.runbook,
    slot: "2026-10-08T01:00:00Z",
    timezone: "Asia/Shanghai",
    runId: alert.runId,
    error: alert.error,
    count: 3,
    link: "https://jobs.example.com/prod/daily-report~20261008T010000Z",
  });
});

test("a webhook's key that can be guessed signs nothing", async () => {
  const receiver = await httpReceiver();
  const deps = depsWith({ URL: receiver.address, KEY: "short" });
  const channel = webhookChannel(deps, { name: "webhook", url: "URL", secret: "KEY" });
  await expect(channel.send([alert])).rejects.toThrow("the secret KEY is shorter than 24 bytes");
  expect(receiver.received).toEqual([]);
});

test("an e-mail is one Publish to its topic, with a subject that SNS takes", async () => {
  const receiver = await httpReceiver(
    "<PublishResponse><PublishResult><MessageId>1</MessageId></PublishResult></PublishResponse>",
  );
  const credentials = { accessKeyId: "a", secretAccessKey: "b" };
  const sns = new SNSClient({ region: "us-east-1", endpoint: receiver.address, credentials, maxAttempts: 1 });
  const topicArn = "arn:aws:sns:us-east-1:000000000000:notes-prod-mail-email";
  const channel = emailChannel(depsWith({}), { name: "email", sns, topicArn });
  expect(await channel.send([{ ...alert, job: `report-${"x".repeat(120)}` }])).toEqual({ kind: "taken" });
  expect(receiver.received).toMatchObject([{ method: "POST", body: expect.stringContaining("Publish") }]);
  const form = Object.fromEntries(new URLSearchParams(receiver.received[0]?.body));
  expect(form).toMatchObject({ Action: "Publish", TopicArn: topicArn });
  expect(form["Subject"]).toMatch(/^[\x20-\x7e]{100}$/);
  for (const line of FACTS) expect(form["Message"]).toContain(line);
});
