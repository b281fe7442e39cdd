/** A value of a template: JSON, with CloudFormation's functions as objects. */
export type Value = string | number | boolean | readonly Value[] | { readonly [name: string]: Value };

export interface Resource {
  readonly Type: string;
  readonly Properties: { readonly [name: string]: Value };
  readonly DependsOn?: readonly string[];
  readonly DeletionPolicy?: "Retain" | "Delete";
  readonly UpdateReplacePolicy?: "Retain" | "Delete";
}

export interface Resources {
  readonly [logicalId: string]: Resource;
}

export const ref = (logicalId: string): Value => ({ Ref: logicalId });
export const getArn = (logicalId: string): Value => ({ "Fn::GetAtt": [logicalId, "Arn"] });
export const sub = (text: string): Value => ({ "Fn::Sub": text });
/** `${name}` in a text for `Fn::Sub`. */
export const placeholder = (name: string): string => `$\{${name}}`;

/** An ARN of this account and region, for what another resource must name before it exists. */
export const arnHere = (service: string, path: string): Value =>
  sub(
    `arn:${placeholder("AWS::Partition")}:${service}:${placeholder("AWS::Region")}:${placeholder("AWS::AccountId")}:${path}`,
  );

export interface Statement {
  readonly Effect: "Allow" | "Deny";
  readonly Action: readonly string[];
  readonly Resource: readonly Value[];
  readonly Principal?: Value;
  readonly Condition?: Value;
}

export const allow = (actions: readonly string[], resources: readonly Value[]): Statement => ({
  Effect: "Allow",
  Action: actions,
  Resource: resources,
});

export const policyDocument = (statements: readonly Statement[]): Value => ({
  Version: "2012-10-17",
  Statement: statements.map((statement): Value => ({ ...statement })),
});
