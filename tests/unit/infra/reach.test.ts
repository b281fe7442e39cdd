import { expect, test } from "vitest";
import { unheard } from "../../../infra/reach.ts";
import { type AlertsConfig, NO_ALERTS } from "../../../lib/core/alerts/alert-channels.ts";

const slack = { kind: "slack", name: "slack", webhook: "SLACK" } as const;
const email = { kind: "email", name: "email", to: ["ops@example.com"] } as const;
const alerts = (changes: Partial<AlertsConfig>): AlertsConfig => ({ ...NO_ALERTS, ...changes });

test("a stage without channels is told that nobody hears of anything", () => {
  expect(unheard(NO_ALERTS, "prod")).toEqual([
    expect.stringMatching(/^belfry\.config\.ts: alerts: nobody hears .* stage prod: .* notify and page \(/),
  ]);
});

test("channels for what wakes somebody only leave the rest unheard", () => {
  const pageOnly = alerts({ channels: [email], topics: { notify: [], page: ["email"] } });
  expect(unheard(pageOnly, "prod")).toEqual([expect.stringContaining("no channel is told of notify (")]);
});

test("who has no e-mail channel would not hear that the notifier fails", () => {
  const chat = alerts({ channels: [slack], topics: { notify: ["slack"], page: [] } });
  expect(unheard(chat, "prod")).toEqual([expect.stringContaining("no channel is an e-mail")]);
});

test("a chat for everything and an e-mail leave nothing unheard", () => {
  const both = alerts({ channels: [slack, email], topics: { notify: ["slack"], page: ["email"] } });
  expect(unheard(both, "prod")).toEqual([]);
});
