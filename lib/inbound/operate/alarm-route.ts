import type { Hono } from "hono";
import type { RingingAlarm } from "../../core/alarms/alarm.ts";
import { shortIsoOf } from "../../core/time.ts";
import type { AlarmsAnswer, AlarmView } from "./answers.ts";

export interface AlarmDeps {
  /** Where the stack judges its alarms itself; those of a deployment are CloudWatch's. */
  readonly ringing?: () => readonly RingingAlarm[];
}

const viewOf = ({ alarm, sinceMs }: RingingAlarm): AlarmView => {
  const { key, about, topic, meaning, remedy } = alarm;
  return { key, about, topic, since: shortIsoOf(sinceMs), meaning, remedy };
};

export const addAlarmRoute = (app: Hono, { ringing }: AlarmDeps): void => {
  app.get("/v1/alarms", (context) =>
    context.json({ alarms: ringing === undefined ? null : ringing().map(viewOf) } satisfies AlarmsAnswer),
  );
};
