import { durationText } from "../duration.ts";
import { SECOND_MS } from "../time.ts";
import type { AlarmDefinition } from "./alarm.ts";

const STATISTICS = { Sum: "", Maximum: ", at the highest,", Minimum: ", at the lowest," } as const;

/** When it rings, as people say it: `RunsDead at least 1 within 1 minute`. */
export const ruleText = (alarm: AlarmDefinition): string => {
  const { comparison, datapointsToAlarm, evaluationPeriods, metrics, periodS, statistic, threshold } = alarm;
  const names = [...new Set(metrics.map(({ name }) => name))].join(" + ");
  const period = durationText(periodS * SECOND_MS);
  const times = datapointsToAlarm === evaluationPeriods ? "each" : String(datapointsToAlarm);
  const within =
    evaluationPeriods === 1 ? `within ${period}` : `in ${times} of ${evaluationPeriods} times ${period}`;
  const bound = `${comparison === "below" ? "below" : "at least"} ${threshold}`;
  return `${names}${STATISTICS[statistic]} ${bound} ${within}`;
};
