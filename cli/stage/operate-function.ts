import { InvokeCommand, LambdaClient } from "@aws-sdk/client-lambda";
import { type Deployment, functionName } from "../../infra/naming.ts";
import type { Exchange } from "../exchange.ts";
import { NoStack } from "../stack-file.ts";
import { awsError, CLIENT_OPTIONS, nameOf, regionOf } from "./aws.ts";
import { deploymentOf } from "./service.ts";
import { whyNoFunction } from "./stack-state.ts";

/** As functions/operate.ts answers. */
interface OperateAnswer {
  readonly status: number;
  readonly body: string;
}

const textOf = (payload: Uint8Array | undefined): string => new TextDecoder().decode(payload);

/** Lambda's own account of a function that threw, ran out of time, or could not start. */
const failed = (name: string, payload: string): NoStack => {
  const { errorMessage } = JSON.parse(payload) as { readonly errorMessage?: string };
  return new NoStack(
    "stage_failed",
    `${name} failed: ${errorMessage ?? payload}`,
    'its log says more: "npx serverless logs -f belfry-operate"',
  );
};

const whyNoAnswer = async (error: unknown, deployment: Deployment, region: string): Promise<NoStack> => {
  const name = functionName(deployment, "operate");
  return nameOf(error) === "ResourceNotFoundException"
    ? whyNoFunction(deployment, region)
    : awsError(error, `invoke ${name} in ${region} (lambda:InvokeFunction)`);
};

/**
 * The router of a deployed stage, by one permission: to invoke its operate function.
 * @throws InvalidInput for a stage that cannot be one, or where nothing names the service
 */
export const stageExchange = (stage: string): Exchange => {
  const deployment = deploymentOf(stage);
  const name = functionName(deployment, "operate");
  // A question may be asked again. An act whose answer was lost is the caller's to look at: two runs are not one.
  const clients = {
    GET: new LambdaClient(CLIENT_OPTIONS),
    POST: new LambdaClient({ ...CLIENT_OPTIONS, maxAttempts: 1 }),
  };
  return async ({ method, path, body, signal }) => {
    const client = clients[method];
    const region = await regionOf(client);
    const event = { method, path, ...(body === undefined ? {} : { body: JSON.stringify(body) }) };
    const answer = await client
      .send(
        new InvokeCommand({ FunctionName: name, Payload: new TextEncoder().encode(JSON.stringify(event)) }),
        signal === undefined ? {} : { abortSignal: signal },
      )
      .catch(async (error: unknown) => {
        throw await whyNoAnswer(error, deployment, region);
      });
    const payload = textOf(answer.Payload);
    if (answer.FunctionError !== undefined) throw failed(name, payload);
    const { status, body: text } = JSON.parse(payload) as OperateAnswer;
    return { status, body: JSON.parse(text) };
  };
};
