import { faultsIn } from "../planted.ts";

const SILENCE = "silence is an alarm";
const FALSE_ALARM = "what is well rings no alarm";
const UNCOUNTED = "every run that ends dead is counted";

export const alarmFaults = [
  ...faultsIn("lib/core/alarms/alarm-state.ts", [
    [
      "missing data is never breaching",
      'rule.missing === "breaching" ? rule.evaluationPeriods - real.length : 0',
      "0",
      SILENCE,
    ],
    [
      "missing data fills in for data that is there",
      'rule.missing === "breaching" ? rule.evaluationPeriods - real.length : 0',
      'rule.missing === "breaching" ? rule.evaluationPeriods : 0',
      FALSE_ALARM,
    ],
    ["the oldest values are judged", "(-rule.evaluationPeriods)", "(0, rule.evaluationPeriods)", FALSE_ALARM],
    [
      "a period that is not over is judged",
      "Math.floor(nowMs / minuteMs) * minuteMs",
      "Math.ceil(nowMs / minuteMs) * minuteMs",
      FALSE_ALARM,
    ],
  ]),
  ...faultsIn("lib/app/path/begin.ts", [
    ["a run that lost its worker dies without a word", "    tellEnd(deps, visit, end);\n", "", UNCOUNTED],
  ]),
];
