import { once } from "node:events";
import { Agent, createServer, type IncomingHttpHeaders, type IncomingMessage, request } from "node:http";
import type { AddressInfo } from "node:net";
import { seededRandom } from "../../lib/simulation/random.ts";

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

interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

const bodyOf = async (message: IncomingMessage): Promise<Buffer> => {
  const chunks: Buffer[] = [];
  for await (const chunk of message) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
};

/** Stands before a service and fails some of the calls, chosen by seed in the order in which they come. */
export const startFaultProxy = async ({ target, service, seed, faults, delayMs }: FaultProxyOptions) => {
  const random = seededRandom(seed);
  const agent = new Agent({ keepAlive: true });
  const { hostname, port } = new URL(target);
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

  const forward = async (incoming: IncomingMessage, body: Buffer): Promise<Answer> => {
    const { method, url: path, headers } = incoming;
    const outgoing = request({ agent, hostname, port, method, path, headers });
    outgoing.end(body);
    const [answer] = (await once(outgoing, "response")) as [IncomingMessage];
    return { status: answer.statusCode ?? 502, headers: answer.headers, body: await bodyOf(answer) };
  };

  const throttled = (): Answer => {
    const { type, headers } = THROTTLED[service];
    const body = Buffer.from(JSON.stringify({ __type: type, message: "too many calls" }));
    return { status: 400, headers: { ...headers, "content-type": "application/x-amz-json-1.0" }, body };
  };

  /** Undefined: no answer, the connection just ends. */
  const answerTo = async (incoming: IncomingMessage): Promise<Answer | undefined> => {
    const fault = draw();
    const body = await bodyOf(incoming);
    if (fault === "drop-before") return undefined;
    if (fault === "throttle") return throttled();
    const answer = await forward(incoming, body);
    if (fault === "delay") {
      await new Promise((resolve) => setTimeout(resolve, random.whole(1, delayMs)));
    }
    return fault === "drop-answer" ? undefined : answer;
  };

  const server = createServer((incoming, outgoing) => {
    // A caller that is killed in the middle of its call is no fault of ours.
    answerTo(incoming).then(
      (answer) => {
        if (answer === undefined) incoming.socket.destroy();
        else outgoing.writeHead(answer.status, answer.headers).end(answer.body);
      },
      () => incoming.socket.destroy(),
    );
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    hits,
    calls: (): number => calls,
    /** From here on it only forwards. */
    endFaults: (): void => {
      quiet = true;
    },
    close: (): void => {
      server.closeAllConnections();
      server.close();
      agent.destroy();
    },
  };
};
