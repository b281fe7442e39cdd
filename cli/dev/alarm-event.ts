import { randomUUID } from "node:crypto";
import { alarmName } from "../../lib/core/alarms/alarm.ts";
import type { AlarmState } from "../../lib/core/alarms/alarm-state.ts";
import { ruleText } from "../../lib/core/alarms/alarm-text.ts";
import { isoOf } from "../../lib/core/time.ts";
import type { StateChange } from "./alarm-board.ts";
import { ACCOUNT_ID, REGION, SERVICE, STAGE } from "./resources.ts";

const STATES: { readonly [state in AlarmState]: string } = { ok: "OK", alarm: "ALARM" };

/** `2026-10-08T02:06:00.250+0000`, as CloudWatch writes it. */
const timeText = (atMs: number): string => isoOf(atMs).replace("Z", "+0000");

const reasonOf = ({ alarm, to }: StateChange): string =>
  `${to === "alarm" ? "" : "no longer "}${ruleText(alarm)}`;

const messageOf = (change: StateChange): object => {
  const { alarm, from, to, atMs } = change;
  const name = alarmName({ service: SERVICE, stage: STAGE }, alarm.key);
  return {
    AlarmName: name,
    AlarmDescription: `${alarm.meaning} ${alarm.remedy}`,
    AWSAccountId: ACCOUNT_ID,
    NewStateValue: STATES[to],
    NewStateReason: reasonOf(change),
    StateChangeTime: timeText(atMs),
    Region: REGION,
    AlarmArn: `arn:aws:cloudwatch:${REGION}:${ACCOUNT_ID}:alarm:${name}`,
    OldStateValue: from === undefined ? "INSUFFICIENT_DATA" : STATES[from],
  };
};

/** The change as a deployment's topic puts it into the notifier's queue: CloudWatch's message in one of SNS. */
export const alarmMessage = (change: StateChange): string =>
  JSON.stringify({
    Type: "Notification",
    MessageId: randomUUID(),
    TopicArn: `arn:aws:sns:${REGION}:${ACCOUNT_ID}:${SERVICE}-${STAGE}-belfry-alarms`,
    Subject: `${STATES[change.to]}: ${alarmName({ service: SERVICE, stage: STAGE }, change.alarm.key)}`,
    Message: JSON.stringify(messageOf(change)),
    Timestamp: isoOf(change.atMs),
  });
