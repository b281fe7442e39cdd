import { deliver } from "../app/notify/deliver.ts";
import { putAlert } from "../app/notify/outbox.ts";
import { testAlert } from "../core/alarms/alarm-change.ts";
import { NO_ALERTS } from "../core/alerts/alert-channels.ts";
import type { Manifest } from "../core/jobs/job.ts";
import { notifierHandler } from "../inbound/notifier.ts";
import { shell } from "../inbound/shell.ts";
import type { Bell } from "../ports/bell.ts";
import { type LocalAlerts, localRoutes } from "./channels.ts";
import type { StackConfig } from "./config.ts";
import { composeDeps } from "./deps.ts";
import { deadLettersFunction, dispatcherFunction, notifierDeps, watchdogFunction } from "./functions.ts";
import { type OwnParts, operateApp } from "./operate.ts";
import { pingApp } from "./pings.ts";

/** The notifier of the embedded stack, and a test of it: the alert is put into the outbox and told at once. */
const localNotifier = (config: StackConfig, manifest: Manifest, local: LocalAlerts) => {
  const { routes, absent } = localRoutes(config, manifest.alerts ?? NO_ALERTS, local);
  const deps = notifierDeps(config, manifest, routes);
  const bell: Bell = {
    name: "outbox",
    channels: (topic) => [
      ...routes.filter(({ topics }) => topics.includes(topic)).map(({ channel }) => channel.name),
      ...absent,
    ],
    ring: async (topic, id) => {
      await putAlert(deps.table, testAlert(topic, id, deps.clock.nowMs()));
      await deliver(deps);
    },
  };
  return { handler: shell(deps.journal, notifierHandler(deps)), bell, absent };
};

/** Every function of a deployment but its workers, for the embedded stack: the same ones that Lambda runs. */
export const composeStack = (
  config: StackConfig,
  manifest: Manifest,
  local: LocalAlerts & Pick<OwnParts, "ringing" | "pings">,
) => {
  const watchdog = watchdogFunction(config, manifest);
  const notifier = localNotifier(config, manifest, local);
  const { pings, ringing } = local;
  const operate = operateApp(config, manifest, { bell: notifier.bell, ringing, pings });
  const pinged = pingApp(composeDeps(config, manifest), pings.secrets);
  return {
    dispatcher: dispatcherFunction(config, manifest),
    deadLetters: deadLettersFunction(config, manifest),
    watchdog: () => watchdog({}, { awsRequestId: "embedded" }),
    notifier: (event: unknown) => notifier.handler(event, { awsRequestId: "embedded" }),
    operate: { fetch: async (request: Request): Promise<Response> => operate.fetch(request) },
    pings: { fetch: async (request: Request): Promise<Response> => pinged.fetch(request) },
    absentChannels: notifier.absent,
  };
};
