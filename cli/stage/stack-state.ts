import { CloudFormationClient, DescribeStacksCommand } from "@aws-sdk/client-cloudformation";
import type { Deployment } from "../../infra/naming.ts";
import { NoStack } from "../stack-file.ts";
import { awsError, CLIENT_OPTIONS, nameOf } from "./aws.ts";

/** As the Serverless Framework names it, where `provider.stackName` does not. */
export const stackName = ({ service, stage }: Deployment): string => `${service}-${stage}`;

export interface StackState {
  /** CloudFormation's own word: `UPDATE_COMPLETE`, `ROLLBACK_COMPLETE`, ... */
  readonly status: string;
  readonly reason?: string;
  readonly outputs: { readonly [name: string]: string };
}

/**
 * The stack as it is; undefined where there is none.
 * @throws Unavailable when CloudFormation does not say
 */
export const stackState = async (deployment: Deployment): Promise<StackState | undefined> => {
  const name = stackName(deployment);
  try {
    const answer = await new CloudFormationClient(CLIENT_OPTIONS).send(
      new DescribeStacksCommand({ StackName: name }),
    );
    const { StackStatus = "unknown", StackStatusReason, Outputs = [] } = answer.Stacks?.[0] ?? {};
    return {
      status: StackStatus,
      ...(StackStatusReason ? { reason: StackStatusReason } : {}),
      outputs: Object.fromEntries(Outputs.map((each) => [each.OutputKey ?? "", each.OutputValue ?? ""])),
    };
  } catch (error) {
    // CloudFormation has no error of its own for that.
    if (nameOf(error) === "ValidationError" && /does not exist/.test(String(error))) return undefined;
    throw awsError(error, `look at the stack ${name} (cloudformation:DescribeStacks)`);
  }
};

/** What to do about a stack in that state; undefined where nothing is wrong with it. */
export const adviceFor = (status: string, { stage }: Deployment): string | undefined => {
  if (/^(?:ROLLBACK|CREATE_FAILED|DELETE_FAILED)/.test(status) && !status.endsWith("IN_PROGRESS"))
    return `"npx serverless remove --stage ${stage}", then deploy again`;
  if (status === "UPDATE_ROLLBACK_FAILED")
    return "continue the rollback in the CloudFormation console, then deploy again";
  if (status === "UPDATE_ROLLBACK_COMPLETE" || status === "UPDATE_FAILED")
    return `the last deploy failed; mend what it complained of, then "npx serverless deploy --stage ${stage}"`;
  if (status === "DELETE_IN_PROGRESS") return "wait until it is removed";
  if (status.endsWith("IN_PROGRESS")) return "wait until the deploy is over";
  return undefined;
};

/** A stage whose operate function is not there: never deployed, removed, or broken off on its way. */
export const whyNoFunction = async (deployment: Deployment, region: string): Promise<NoStack> => {
  const { service, stage } = deployment;
  const deploy = `"npx serverless deploy --stage ${stage}" makes it; BELFRY_SERVICE and AWS_REGION say where to look`;
  // Whoever may only operate may not look at stacks, and gets the plain answer.
  const state = await stackState(deployment).catch(() => undefined);
  const advice = state === undefined ? undefined : adviceFor(state.status, deployment);
  if (state === undefined || advice === undefined)
    return new NoStack("no_stage", `${service} has no stage "${stage}" in ${region}`, deploy);
  const why = state.reason === undefined ? "" : `: ${state.reason}`;
  return new NoStack(
    "stage_failed",
    `the stage "${stage}" of ${service} cannot answer: its stack is in ${state.status}${why}`,
    advice,
  );
};
