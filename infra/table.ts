import { tableDefinition } from "../lib/adapters/dynamo/table-definition.ts";
import type { Resources, Value } from "./cloudformation.ts";

export const TABLE = "BelfryTable";

/** The one definition that the embedded stack uses too, without what the SDK's type adds. */
const shared = (): { readonly [name: string]: Value } => {
  const { TableName: _, ...definition } = tableDefinition("");
  return JSON.parse(JSON.stringify(definition));
};

/**
 * The table has no name of its own: a removed stack leaves it behind, on purpose, and a name would stand in the way
 * of the next one. The index is sparse; its keys are only on runs that ended badly.
 */
export const tableResources = (): Resources => ({
  [TABLE]: {
    Type: "AWS::DynamoDB::Table",
    DeletionPolicy: "Retain",
    UpdateReplacePolicy: "Retain",
    Properties: {
      ...shared(),
      DeletionProtectionEnabled: true,
      PointInTimeRecoverySpecification: { PointInTimeRecoveryEnabled: true },
      TimeToLiveSpecification: { AttributeName: "expiresAtS", Enabled: true },
    },
  },
});
