import { GetParametersCommand, SSMClient } from "@aws-sdk/client-ssm";
import { mockClient } from "aws-sdk-client-mock";
import { expect, test } from "vitest";
import { deployedRoutes, localRoutes } from "../../../lib/compose/channels.ts";
import type { StackConfig } from "../../../lib/compose/config.ts";
import type { Alert } from "../../../lib/core/alerts/alert.ts";
import type { AlertsConfig } from "../../../lib/core/alerts/alert-channels.ts";
import { AWS_TIMINGS } from "../../../lib/core/settings.ts";
import { httpReceiver } from "./http-receiver.ts";

const alert: Alert = { id: "a", topic: "notify", kind: "failed", atMs: 0, reason: "it threw" };

const config: StackConfig = {
  ...AWS_TIMINGS,
  service: "notes",
  stage: "prod",
  region: "us-east-1",
  tableName: "t",
  queueUrls: {},
  deadLetterUrls: {},
  dispatchFailuresUrl: "",
  emailTopics: { email: "arn:aws:sns:us-east-1:000000000000:notes-prod-email" },
};

const alerts: AlertsConfig = {
  secrets: { SLACK: "ssm:/notes/{stage}/slack" },
  channels: [
    { kind: "slack", name: "slack", webhook: "SLACK" },
    { kind: "email", name: "email", to: ["ops@example.com"] },
  ],
  topics: { notify: ["slack"], page: ["email"] },
};

test("a channel's secret is read once, and again after the channel has not taken something", async () => {
  const chat = await httpReceiver("ok");
  const ssm = mockClient(SSMClient);
  const answer = (path: string) => ({
    Parameters: [{ Name: "/notes/prod/slack", Value: `${chat.address}/${path}` }],
  });
  ssm.on(GetParametersCommand).resolvesOnce(answer("old")).resolves(answer("new"));
  const [slack] = deployedRoutes(config, alerts);
  await slack?.channel.send([alert]);
  chat.answers.push({ status: 404, body: "no_service" });
  expect(await slack?.channel.send([alert])).toMatchObject({ kind: "not-now" });
  await slack?.channel.send([alert]);
  await slack?.channel.send([alert]);
  expect(chat.received.map(({ url }) => url.pathname)).toEqual(["/old", "/old", "/new", "/new"]);
  expect(ssm.commandCalls(GetParametersCommand)).toHaveLength(2);
});

test("a secret that is not there fails its channel, by name, until it is", async () => {
  const chat = await httpReceiver("ok");
  const ssm = mockClient(SSMClient);
  ssm
    .on(GetParametersCommand)
    .resolvesOnce({ Parameters: [] })
    .resolves({ Parameters: [{ Name: "/notes/prod/slack", Value: chat.address }] });
  const [slack] = deployedRoutes(config, alerts);
  await expect(slack?.channel.send([alert])).rejects.toThrow("ssm:/notes/prod/slack does not exist");
  expect(await slack?.channel.send([alert])).toEqual({ kind: "taken" });
});

test("a deployed stage has every channel with the topics that it hears of, e-mail by its topic", () => {
  expect(deployedRoutes(config, alerts).map(({ channel, topics }) => [channel.name, topics])).toEqual([
    ["slack", ["notify", "page"]],
    ["email", ["page"]],
  ]);
});

test("on a laptop there is the terminal, channels whose secrets are there, and the reason for each other", () => {
  const lines: string[] = [];
  const withSecret = localRoutes(config, alerts, {
    secret: () => "https://x.example",
    say: (line) => lines.push(line),
  });
  expect(withSecret.routes.map(({ channel }) => channel.name)).toEqual(["terminal", "slack"]);
  const without = localRoutes(config, alerts, { secret: () => undefined, say: (line) => lines.push(line) });
  expect(without.routes.map(({ channel }) => channel.name)).toEqual(["terminal"]);
  expect(without.absent).toEqual([
    { name: "slack", why: "SLACK is neither in .env nor in the environment" },
    { name: "email", why: "only a deployed stage sends e-mail" },
  ]);
});

test("the terminal tells an alert in one line", async () => {
  const lines: string[] = [];
  const { routes } = localRoutes(config, alerts, {
    secret: () => undefined,
    say: (line) => lines.push(line),
  });
  await routes[0]?.channel.send([{ ...alert, job: "report" }]);
  expect(lines).toEqual(["alert (notify) [prod] report failed: Why: it threw; At: 1970-01-01T00:00:00Z"]);
});
