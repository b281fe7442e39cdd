import { CloudWatchClient, SetAlarmStateCommand } from "@aws-sdk/client-cloudwatch";

/** Sets a real alarm to ringing. CloudWatch judges it by its metric again soon after, and it ends by itself. */
export const ringAlarm = async ({
  region,
  alarm,
  reason,
}: {
  readonly region: string;
  readonly alarm: string;
  readonly reason: string;
}): Promise<void> => {
  await new CloudWatchClient({ region }).send(
    new SetAlarmStateCommand({ AlarmName: alarm, StateValue: "ALARM", StateReason: reason }),
  );
};
