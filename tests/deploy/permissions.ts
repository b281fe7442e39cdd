import { GetRoleCommand, SimulatePrincipalPolicyCommand } from "@aws-sdk/client-iam";
import type { Aws } from "./aws.ts";

export const nameOfRole = (roleArn: string): string => roleArn.slice(roleArn.lastIndexOf("/") + 1);

/** A resource that a pattern of a policy means. */
export const oneOf = (pattern: string): string => pattern.replaceAll("?", "x").replaceAll("*", "x");

/** May the deployed role do that? By its own policies, as IAM judges them. */
export const mayDo = async (
  { iam }: Pick<Aws, "iam">,
  {
    roleArn,
    action,
    resource,
  }: { readonly roleArn: string; readonly action: string; readonly resource: string },
): Promise<boolean> => {
  const { EvaluationResults = [] } = await iam.send(
    new SimulatePrincipalPolicyCommand({
      PolicySourceArn: roleArn,
      ActionNames: [action],
      ResourceArns: [resource],
    }),
  );
  return (
    EvaluationResults.length > 0 && EvaluationResults.every(({ EvalDecision }) => EvalDecision === "allowed")
  );
};

interface TrustStatement {
  readonly Effect: string;
  readonly Principal: { readonly Service?: string };
  readonly Action: string;
  readonly Condition?: { readonly [operator: string]: { readonly [key: string]: string } };
}

/** Does the deployed role let the service in, with these facts of the request? Knows `StringEquals` and no more. */
export const trusts = async (
  { iam }: Pick<Aws, "iam">,
  roleArn: string,
  caller: { readonly service: string; readonly facts: { readonly [key: string]: string } },
): Promise<boolean> => {
  const { Role } = await iam.send(new GetRoleCommand({ RoleName: nameOfRole(roleArn) }));
  const { Statement } = JSON.parse(decodeURIComponent(Role?.AssumeRolePolicyDocument ?? "")) as {
    readonly Statement: readonly TrustStatement[];
  };
  return Statement.some(
    ({ Effect, Principal, Action, Condition = {} }) =>
      Effect === "Allow" &&
      Principal.Service === caller.service &&
      Action === "sts:AssumeRole" &&
      Object.entries(Condition).every(
        ([operator, wanted]) =>
          operator === "StringEquals" &&
          Object.entries(wanted).every(([key, value]) => caller.facts[key] === value),
      ),
  );
};
