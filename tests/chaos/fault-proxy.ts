import { seededRandom } from "../../lib/simulation/random.ts";
import { type ProxiedCall, type ProxyAnswer, refusal, startProxy } from "../support/proxy.ts";

/**
 * What the proxy does to a call: `drop-before`: the connection ends and the service never hears of it; `drop-answer`:
 * the service acts, and its answer is lost; `delay`: the answer comes late; `throttle`: the service's own word for "too
 * many calls", in its wire format.
 */
export const PROXY_FAULTS = ["drop-before", "drop-answer", "delay", "throttle"] as const;
export type ProxyFault = (typeof PROXY_FAULTS)[number];

/** Probability of each per call. */
export type ProxyFaults = { readonly [kind in ProxyFault]: number };

export interface FaultProxyOptions {
  /** Where the service is: `http://127.0.0.1:port`. */
  readonly target: string;
  readonly service: "dynamodb" | "sqs";
  readonly seed: number;
  readonly faults: ProxyFaults;
  /** The longest delay. */
  readonly delayMs: number;
}

const THROTTLED = {
  dynamodb: {
    type: "com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException",
    headers: {},
  },
  sqs: {
    type: "com.amazonaws.sqs#RequestThrottled",
    headers: { "x-amzn-query-error": "RequestThrottled;Sender" },
  },
} as const;

/** Stands before a service and fails some of the calls, chosen by seed in the order in which they come. */
export const startFaultProxy = async ({ target, service, seed, faults, delayMs }: FaultProxyOptions) => {
  const random = seededRandom(seed);
  const hits: Record<ProxyFault, number> = { "drop-before": 0, "drop-answer": 0, delay: 0, throttle: 0 };
  let calls = 0;
  let quiet = false;

  const draw = (): ProxyFault | undefined => {
    calls += 1;
    if (quiet) return undefined;
    const kind = PROXY_FAULTS.find((any) => random.chance(faults[any]));
    if (kind !== undefined) hits[kind] += 1;
    return kind;
  };

  const throttled = (): ProxyAnswer => {
    const { type, headers } = THROTTLED[service];
    return refusal(type, "too many calls", headers);
  };

  /** Undefined: no answer, the connection just ends. */
  const answerTo = async ({ forward }: ProxiedCall): Promise<ProxyAnswer | undefined> => {
    const fault = draw();
    if (fault === "drop-before") return undefined;
    if (fault === "throttle") return throttled();
    const answer = await forward();
    if (fault === "delay") {
      await new Promise((resolve) => setTimeout(resolve, random.whole(1, delayMs)));
    }
    return fault === "drop-answer" ? undefined : answer;
  };

  const { endpoint, close } = await startProxy(target, answerTo);
  return {
    endpoint,
    hits,
    calls: (): number => calls,
    /** From here on it only forwards. */
    endFaults: (): void => {
      quiet = true;
    },
    close,
  };
};
