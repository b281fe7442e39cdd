import { makeInspect } from "../app/inspect/inspect.ts";
import { makePing } from "../app/monitors/ping.ts";
import { makeListAlerts } from "../app/notify/list-alerts.ts";
import { makeTestAlert } from "../app/notify/test-alert.ts";
import { makeOperator } from "../app/operate/operator.ts";
import { makeRunByHand } from "../app/operate/run-by-hand.ts";
import { makeSeriesActs } from "../app/series/series-acts.ts";
import { alarmName, type RingingAlarm } from "../core/alarms/alarm.ts";
import { testReason } from "../core/alarms/alarm-change.ts";
import { TEST_ALARM } from "../core/alarms/alarms.ts";
import { channelsOf, NO_ALERTS } from "../core/alerts/alert-channels.ts";
import type { Manifest } from "../core/jobs/job.ts";
import { operateRouter } from "../inbound/operate/router.ts";
import type { Bell } from "../ports/bell.ts";
import type { StackConfig } from "./config.ts";
import { composeDeps } from "./deps.ts";
import { deployedPingSecrets, type Pings, pingAddress } from "./pings.ts";

/** Rung by a test alone; its client is loaded then. */
const deployedBell = (config: StackConfig, manifest: Manifest): Bell => {
  const alerts = manifest.alerts ?? NO_ALERTS;
  const alarm = alarmName(config, TEST_ALARM);
  return {
    name: `alarm ${alarm}`,
    channels: (topic) => channelsOf(alerts, topic),
    ring: async (topic, id) => {
      const { ringAlarm } = await import("../adapters/cloudwatch/ring-alarm.ts");
      await ringAlarm({ region: config.region, alarm, reason: testReason(topic, id) });
    },
  };
};

/** What another stack than a deployed one has in the place of CloudWatch. */
export interface OwnAlarms {
  readonly bell: Bell;
  readonly ringing: () => readonly RingingAlarm[];
}

/** What a stack that is not deployed brings itself. */
export type OwnParts = OwnAlarms & { readonly pings: Pings };

/** The router that whoever looks or acts goes through. Who may pass is decided before it. */
export const operateApp = (
  config: StackConfig,
  manifest: Manifest,
  { bell, ringing, pings }: Partial<OwnParts> = {},
) => {
  const deps = composeDeps(config, manifest);
  const deployedPings = (): Pings => ({
    url: config.pings?.url ?? "",
    secrets: deployedPingSecrets(config, deps.clock),
  });
  return operateRouter({
    inspect: makeInspect(deps),
    runByHand: makeRunByHand(deps),
    operator: makeOperator(deps),
    ping: makePing(deps),
    pingAddress: pingAddress(pings ?? deployedPings()),
    series: makeSeriesActs(deps),
    listAlerts: makeListAlerts(deps),
    testAlert: makeTestAlert({ ...deps, bell: bell ?? deployedBell(config, manifest) }),
    ...(ringing === undefined ? {} : { ringing }),
    jobs: deps.jobs,
    clock: deps.clock,
    report: (error) =>
      deps.journal.notice("error", "invocation-failed", {
        why: error instanceof Error ? (error.stack ?? error.message) : String(error),
      }),
  });
};
