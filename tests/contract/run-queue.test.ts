import { ReceiveMessageCommand, SQSClient } from "@aws-sdk/client-sqs";
import { afterAll, beforeAll, describe } from "vitest";
import { sqsRunQueue } from "../../lib/adapters/sqs/sqs-queues.ts";
import { parseMessage } from "../../lib/core/runs/message.ts";
import { makeProcess, type Universe } from "../../lib/simulation/process.ts";
import { makeQueue, queuePort } from "../../lib/simulation/queues.ts";
import { seededRandom } from "../../lib/simulation/random.ts";
import { makeRealWork } from "../../lib/simulation/real-work.ts";
import { virtualTime } from "../../lib/simulation/virtual-time.ts";
import { type EmbeddedServices, embeddedServices } from "../support/embedded-services.ts";
import { TEST_CREDENTIALS } from "../support/embedded-table.ts";
import { runQueueContract } from "./run-queue.contract.ts";

describe("the queue of the simulation", () => {
  runQueueContract(async () => {
    const work = makeRealWork();
    const time = virtualTime(0, work.settle);
    const universe = {
      time,
      work,
      random: seededRandom(1),
      ideal: true,
      faults: () => ({}),
      hits: new Map(),
    };
    const failing = { ...universe, ideal: false, faults: () => ({ throttled: 1 }) };
    const queue = makeQueue(universe, { visibilityMs: 60_000, maxReceives: 10 });
    const portIn = (its: Universe) => queuePort(its, makeProcess(its, "p", 0), () => queue);
    const failed = portIn(failing);
    const played = async <Answer>(asked: Promise<Answer>): Promise<Answer> => {
      // Whoever asked looks at the answer; until then nobody does.
      asked.catch(() => undefined);
      await time.playUntil(time.now() + 10_000);
      return asked;
    };
    return {
      queue: portIn(universe),
      down: {
        send: (pool, message) => played(failed.send(pool, message)),
        sendBatch: (pool, messages) => played(failed.sendBatch(pool, messages)),
      },
      receive: async () => {
        const received = queue.receive();
        return received && parseMessage(received.body);
      },
    };
  });
});

describe("the SQS queue", () => {
  let services: EmbeddedServices;
  const nobody = new SQSClient({
    endpoint: "http://127.0.0.1:1",
    region: "us-east-1",
    credentials: TEST_CREDENTIALS,
    maxAttempts: 1,
  });
  beforeAll(async () => {
    services = await embeddedServices();
  });
  afterAll(async () => {
    nobody.destroy();
    await services.close();
  });

  runQueueContract(async () => {
    const { sqs, makeQueue } = services;
    const url = await makeQueue(`contract-${crypto.randomUUID()}`);
    const urls = { default: url };
    return {
      queue: sqsRunQueue(sqs, urls),
      down: sqsRunQueue(nobody, urls),
      receive: async () => {
        const { Messages: [received] = [] } = await sqs.send(new ReceiveMessageCommand({ QueueUrl: url }));
        return received && parseMessage(received.Body ?? "");
      },
    };
  });
});
