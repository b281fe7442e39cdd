import { type AlertsConfig, channelsOf } from "../lib/core/alerts/alert-channels.ts";
import { emailChannels } from "./topics.ts";

const HOW = "alerts: { notify: [slack({ webhook: ... })], page: [pagerDuty({ routingKey: ... })] }";

/** Whom a stage tells nothing, one line each: it would deploy, and its alarms would ring for nobody. */
export const unheard = (alerts: AlertsConfig, stage: string): readonly string[] => {
  const silent = (["notify", "page"] as const).filter((topic) => channelsOf(alerts, topic).length === 0);
  if (silent.length > 0)
    return [
      `belfry.config.ts: alerts: nobody hears of what goes wrong in the stage ${stage}: no channel is told of ${silent.join(" and ")} (${HOW})`,
    ];
  if (emailChannels(alerts).length > 0) return [];
  return [
    `belfry.config.ts: alerts: no channel is an e-mail, so nobody hears of it when the notifier itself fails in the stage ${stage} (page: [email({ to: ["ops@example.com"] })])`,
  ];
};
