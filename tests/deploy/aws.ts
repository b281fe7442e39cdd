import { Agent } from "node:https";
import { CloudFormationClient } from "@aws-sdk/client-cloudformation";
import { CloudTrailClient } from "@aws-sdk/client-cloudtrail";
import { CloudWatchClient } from "@aws-sdk/client-cloudwatch";
import { CloudWatchLogsClient } from "@aws-sdk/client-cloudwatch-logs";
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { IAMClient } from "@aws-sdk/client-iam";
import { LambdaClient } from "@aws-sdk/client-lambda";
import { SchedulerClient } from "@aws-sdk/client-scheduler";
import { SecretsManagerClient } from "@aws-sdk/client-secrets-manager";
import { SQSClient } from "@aws-sdk/client-sqs";
import type { Emulator } from "./emulator.ts";

export const REGION = "us-east-1";
/** Of the emulator. */
export const ACCOUNT = "000000000000";

/** The deployer's: root of the emulated account. */
const CREDENTIALS = { accessKeyId: "test", secretAccessKey: "test" };

/** What a command needs to reach the emulated AWS as if it were the real one. */
export const environmentFor = ({ endpoint, certificateFile }: Emulator) => ({
  AWS_ENDPOINT_URL: endpoint,
  AWS_REGION: REGION,
  AWS_ACCESS_KEY_ID: CREDENTIALS.accessKeyId,
  AWS_SECRET_ACCESS_KEY: CREDENTIALS.secretAccessKey,
  AWS_CONFIG_FILE: "/dev/null",
  AWS_SHARED_CREDENTIALS_FILE: "/dev/null",
  NODE_EXTRA_CA_CERTS: certificateFile,
});

export type Aws = ReturnType<typeof makeAws>;

/** The deployer's clients. */
export const makeAws = ({ endpoint, certificate }: Emulator) => {
  const options = {
    endpoint,
    region: REGION,
    credentials: CREDENTIALS,
    requestHandler: { httpsAgent: new Agent({ ca: certificate, keepAlive: true }) },
  };
  return {
    cloudFormation: new CloudFormationClient(options),
    cloudTrail: new CloudTrailClient(options),
    cloudWatch: new CloudWatchClient(options),
    dynamo: new DynamoDBClient(options),
    iam: new IAMClient(options),
    lambda: new LambdaClient(options),
    logs: new CloudWatchLogsClient(options),
    scheduler: new SchedulerClient(options),
    secrets: new SecretsManagerClient(options),
    sqs: new SQSClient(options),
  };
};
