import type { Hono } from "hono";
import type { AlertView } from "../../app/notify/list-alerts.ts";
import type { AlertTest } from "../../app/notify/test-alert.ts";
import type { AlertTopic } from "../../core/alerts/alert.ts";
import type { AlertsAnswer } from "./answers.ts";
import { bodyOf } from "./body.ts";
import { ALERT_TEST_REQUEST, ALERTS_QUERY, checked } from "./schemas.ts";

export interface AlertDeps {
  readonly listAlerts: (limit: number) => Promise<readonly AlertView[]>;
  readonly testAlert: (topic: AlertTopic) => Promise<AlertTest>;
}

const DEFAULT_LIMIT = 20;

export const addAlertRoutes = (app: Hono, { listAlerts, testAlert }: AlertDeps): void => {
  app.get("/v1/alerts", async (context) => {
    const { limit } = checked(ALERTS_QUERY, context.req.query());
    return context.json({ alerts: await listAlerts(limit ?? DEFAULT_LIMIT) } satisfies AlertsAnswer);
  });

  /** Answers when each hop has been seen to work or not, at most half a minute later. */
  app.post("/v1/alerts/test", async (context) => {
    const { topic } = checked(ALERT_TEST_REQUEST, await bodyOf(context));
    return context.json((await testAlert(topic ?? "notify")) satisfies AlertTest);
  });
};
