import { SetQueueAttributesCommand } from "@aws-sdk/client-sqs";
import { startFauxqs } from "fauxqs";
import { makeClients } from "../../cli/dev/clients.ts";
import { deadLetterQueue, poolQueue, queueArn, queueUrl, TABLE_NAME } from "../../cli/dev/resources.ts";
import { embeddedTable } from "../support/embedded-table.ts";
import { type ProxiedCall, type ProxyAnswer, refusal, startProxy } from "../support/proxy.ts";

/**
 * What the table does with a call: `refuse` it, as for want of a permission; `cut` the connection, as when it is out of
 * reach; `hang`: take it and give no answer before all is well again.
 */
type Fault = "refuse" | "cut" | "hang";
/** Undefined: the call is answered. */
type Rule = (body: string) => Fault | undefined;

const WELL: Rule = () => undefined;

/** The emulators over HTTP, the table behind a proxy that can be told to fail. */
export const startServices = async () => {
  const table = await embeddedTable(TABLE_NAME);
  const queues = await startFauxqs({ port: 0, logger: false });
  const sqs = `http://127.0.0.1:${queues.port}`;
  let rule = WELL;
  let hanging: (() => void)[] = [];

  const answerTo = async ({ body, forward }: ProxiedCall): Promise<ProxyAnswer | undefined> => {
    const fault = rule(body.toString("utf8"));
    if (fault === undefined) return forward();
    if (fault === "refuse")
      return refusal("com.amazon.coral.service#AccessDeniedException", "not authorized");
    if (fault === "hang") await new Promise<void>((resolve) => hanging.push(resolve));
    return undefined;
  };

  const proxy = await startProxy(table.endpoint, answerTo);
  const clients = makeClients({ dynamodb: table.endpoint, sqs });
  return {
    endpoints: { dynamodb: proxy.endpoint, sqs },
    breakTable: (fault: Rule): void => {
      rule = fault;
    },
    mendTable: (): void => {
      rule = WELL;
      for (const letGo of hanging) letGo();
      hanging = [];
    },
    /** A pool's messages come back after so long, and go to its dead letters after so many receives. */
    hurry: async (pool: string, visibilityS: number, maxReceiveCount: number): Promise<void> => {
      const RedrivePolicy = JSON.stringify({
        deadLetterTargetArn: queueArn(deadLetterQueue(pool)),
        maxReceiveCount,
      });
      await clients.sqs.send(
        new SetQueueAttributesCommand({
          QueueUrl: queueUrl(sqs, poolQueue(pool)),
          Attributes: { VisibilityTimeout: String(visibilityS), RedrivePolicy },
        }),
      );
    },
    close: async (): Promise<void> => {
      proxy.close();
      clients.sqs.destroy();
      clients.dynamodb.destroy();
      await Promise.all([queues.stop(), table.close()]);
    },
  };
};

export type Services = Awaited<ReturnType<typeof startServices>>;
