import { alertText, type TextContext } from "../../core/alerts/alert-text.ts";
import type { Channel } from "../../ports/channel.ts";

/** Whoever sits in front of the embedded stack. */
export const terminalChannel = (context: TextContext, say: (line: string) => void): Channel => ({
  name: "terminal",
  alertsPerMessage: 1,
  send: async (alerts) => {
    for (const alert of alerts) {
      const { title, facts } = alertText(alert, context);
      say(
        `alert (${alert.topic}) ${title}: ${facts.map(([label, value]) => `${label}: ${value}`).join("; ")}`,
      );
    }
    return { kind: "taken" };
  },
});
