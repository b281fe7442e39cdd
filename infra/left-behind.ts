import { CloudFormationClient, DescribeStacksCommand } from "@aws-sdk/client-cloudformation";
import type { Serverless, Utilities } from "./plugin.ts";

/** The output of a stack that names its table. */
const OUTPUT = "BelfryTableName";

/** The stage's table; undefined where the stack, or the right to look at it, is not there. */
const tableOfStack = async (StackName: string, region: string): Promise<string | undefined> => {
  const client = new CloudFormationClient({ region });
  const answer = await client.send(new DescribeStacksCommand({ StackName })).catch(() => undefined);
  return answer?.Stacks?.[0]?.Outputs?.find(({ OutputKey }) => OutputKey === OUTPUT)?.OutputValue;
};

/** What a removal leaves on purpose, and the two ways on from there. */
const leftBehindLines = (table: string, region: string): readonly string[] => [
  `belfry: the table ${table} stays, with the history of all runs`,
  `  to go on with it:  custom: { belfry: { table: ${table} } } in serverless.yml, then deploy`,
  `  to be rid of it:   aws dynamodb update-table --region ${region} --table-name ${table} --no-deletion-protection-enabled`,
  `                     aws dynamodb delete-table --region ${region} --table-name ${table}`,
];

/** The plugin's hooks around `serverless remove`, which works with broken jobs too. */
export const makeRemoval = (serverless: Serverless, log: Utilities["log"]) => {
  let left: string | undefined;
  return {
    /** Before its stack is gone. */
    findTable: async (): Promise<void> => {
      const provider = serverless.getProvider("aws");
      left = await tableOfStack(provider.naming.getStackName(), provider.getRegion());
    },
    tellWhatIsLeft: async (): Promise<void> => {
      if (left === undefined) return;
      for (const line of leftBehindLines(left, serverless.getProvider("aws").getRegion())) log.notice(line);
    },
  };
};
