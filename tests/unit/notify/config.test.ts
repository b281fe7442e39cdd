import { expect, test } from "vitest";
import { topicsOf } from "../../../lib/core/alerts/alert-channels.ts";
import { isQuiet } from "../../../lib/core/alerts/quiet-hours.ts";
import { checkConfig } from "../../../lib/core/jobs/project-config.ts";
import {
  type AlertsOptions,
  defineConfig,
  dingTalk,
  email,
  feishu,
  pagerDuty,
  slack,
  webhook,
  weCom,
} from "../../../lib/index.ts";
import { msOf } from "../../support/path.ts";

const secrets = {
  SLACK: "ssm:/notes/{stage}/slack",
  PAGER: "secretsmanager:notes/{stage}#pager",
  HOOK_URL: "ssm:/notes/hook-url",
  HOOK_KEY: "ssm:/notes/hook-key",
};

const checked = (alerts: object) => checkConfig(defineConfig({ alerts }));

const faultsOf = (alerts: object): readonly string[] => {
  const answer = checked(alerts);
  return answer.ok ? [] : answer.faults.map(({ field, message, hint }) => `${field}: ${message} (${hint})`);
};

test("channels become data, with the names of their secrets and none of their values", () => {
  const options: AlertsOptions = {
    secrets,
    notify: [slack({ webhook: "SLACK" }), email({ to: ["ops@example.com"] })],
    page: [pagerDuty({ routingKey: "PAGER" }), slack({ webhook: "SLACK" })],
    quietHours: { from: "22:00", to: "07:30", timezone: "Asia/Shanghai" },
    link: "https://jobs.example.com/{stage}/runs/{runId}",
  };
  const answer = checked(options);
  expect(answer).toMatchObject({
    value: {
      alerts: {
        secrets,
        channels: [
          { kind: "slack", name: "slack", webhook: "SLACK" },
          { kind: "email", name: "email", to: ["ops@example.com"] },
          { kind: "pagerduty", name: "pagerduty", routingKey: "PAGER" },
        ],
        topics: { notify: ["slack", "email"], page: ["pagerduty", "slack"] },
        quietHours: { fromMinute: 1_320, untilMinute: 450, timezone: "Asia/Shanghai" },
      },
    },
  });
  const alerts = answer.ok ? answer.value.alerts : undefined;
  expect(alerts && topicsOf(alerts, "slack")).toEqual(["notify", "page"]);
  expect(alerts && topicsOf(alerts, "pagerduty")).toEqual(["page"]);
});

test("every channel there is can be configured", () => {
  const notify = [
    slack({ webhook: "SLACK" }),
    slack({ webhook: "SLACK", name: "slack-ops" }),
    dingTalk({ webhook: "SLACK", sign: "HOOK_KEY" }),
    weCom({ webhook: "SLACK" }),
    feishu({ webhook: "SLACK" }),
    pagerDuty({ routingKey: "PAGER", region: "eu" }),
    webhook({ url: "HOOK_URL", secret: "HOOK_KEY" }),
    email({ to: ["a@example.com", "b@example.com"] }),
  ];
  expect(faultsOf({ secrets, notify })).toEqual([]);
});

test("all faults are told at once, each with its field and the fix", () => {
  expect(
    faultsOf({
      secrets,
      notify: [slack({ webhook: "SLAK" }), { kind: "fax" }, dingTalk({ webhook: "SLACK", name: "Ops!" })],
      page: [{ kind: "webhook", url: "HOOK_URL" }, email({ to: ["nobody"] })],
      quietHours: { from: "22", to: "07:00", timezone: "Asia/Shangai" },
      link: "https://jobs.example.com/{run}",
      quiet: true,
    }),
  ).toEqual([
    "alerts.notify[1]: this is no channel (make it with slack, dingTalk, weCom, feishu, pagerDuty, webhook or email)",
    expect.stringContaining('alerts.notify[2].name: "Ops!" is no name'),
    "alerts.page[0].secret: this is needed (undefined)",
    "alerts.page[1].to[0]: this is no e-mail address (ops@example.com)",
    'alerts.quietHours.from: this is no time of day (write hours and minutes: "22:00")',
    expect.stringContaining("alerts.quietHours.timezone: "),
    "alerts.link: {run} stands for nothing (write {job}, {runId}, {stage})",
    expect.stringContaining("alerts.quiet: there is no such option"),
    'alerts.secrets: the channel "slack" needs a secret, and SLAK is not one of these (did you mean "SLACK"?)',
  ]);
});

test("a secret that was written in place of its name is refused and not shown", () => {
  const url = "https://hooks.slack.com/services/T0/B0/hush-hush";
  const faults = faultsOf({ secrets, notify: [slack({ webhook: url })] });
  expect(faults).toEqual([expect.stringContaining("what it names is not one of these")]);
  expect(faults.join()).not.toContain("hush");
});

test("two channels that differ need two names", () => {
  const notify = [slack({ webhook: "SLACK" }), slack({ webhook: "HOOK_URL" })];
  expect(faultsOf({ secrets, notify })).toEqual([
    'alerts.notify[1].name: another channel is named "slack" (give one of the two a name: name: "ops")',
  ]);
});

test("quiet hours that are the whole day are refused", () => {
  const quietHours = { from: "08:00", to: "08:00", timezone: "UTC" };
  expect(faultsOf({ quietHours })).toEqual([
    expect.stringContaining("alerts.quietHours: the quiet hours would be the whole day"),
  ]);
});

test.each([
  ["2026-10-08T13:59:59Z", false],
  ["2026-10-08T14:00:00Z", true],
  ["2026-10-08T16:00:00Z", true],
  ["2026-10-08T22:59:59Z", true],
  ["2026-10-08T23:00:00Z", false],
])("22:00 to 07:00 in Shanghai: %s is quiet: %s", (now, quiet) => {
  const hours = { fromMinute: 1_320, untilMinute: 420, timezone: "Asia/Shanghai" };
  expect(isQuiet(hours, msOf(now))).toBe(quiet);
});

test.each([
  ["2026-01-15T11:59:00Z", false],
  ["2026-01-15T12:00:00Z", true],
  ["2026-07-15T11:00:00Z", true],
  ["2026-07-15T12:00:00Z", false],
])("13:00 to 14:00 in Berlin follows the clock through the year: %s is quiet: %s", (now, quiet) => {
  expect(isQuiet({ fromMinute: 780, untilMinute: 840, timezone: "Europe/Berlin" }, msOf(now))).toBe(quiet);
});
