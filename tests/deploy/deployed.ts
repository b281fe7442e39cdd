import { DescribeStacksCommand, GetTemplateCommand } from "@aws-sdk/client-cloudformation";
import type { Aws } from "./aws.ts";

/** A resource of a deployed template, with its properties as they stand there. */
export interface DeployedResource {
  readonly stack: string;
  readonly type: string;
  readonly properties: { readonly [name: string]: unknown };
}

interface Template {
  readonly Resources: {
    readonly [id: string]: {
      readonly Type: string;
      readonly Properties?: { readonly [name: string]: unknown };
    };
  };
}

/** Reads the templates of all stacks, each anew when its stack has changed. */
export const deployedTemplates = ({ cloudFormation }: Aws) => {
  const known = new Map<string, readonly DeployedResource[]>();

  const read = async (stack: string): Promise<readonly DeployedResource[]> => {
    const answer = await cloudFormation
      .send(new GetTemplateCommand({ StackName: stack }))
      .catch(() => undefined);
    const { Resources = {} } = JSON.parse(answer?.TemplateBody ?? "{}") as Partial<Template>;
    return Object.values(Resources).map(({ Type: type, Properties: properties = {} }) => ({
      stack,
      type,
      properties,
    }));
  };

  return {
    /** @returns `isNew` = not what the last call answered */
    resources: async (): Promise<{
      readonly resources: readonly DeployedResource[];
      readonly isNew: boolean;
    }> => {
      const { Stacks = [] } = await cloudFormation.send(new DescribeStacksCommand({}));
      const names = new Map(
        Stacks.map(({ StackId, StackName = "", StackStatus, LastUpdatedTime }) => [
          `${StackId} ${StackStatus} ${LastUpdatedTime?.toISOString()}`,
          StackName,
        ]),
      );
      const gone = [...known.keys()].filter((key) => !names.has(key));
      const fresh = [...names].filter(([key]) => !known.has(key));
      for (const key of gone) known.delete(key);
      for (const [key, name] of fresh) known.set(key, await read(name));
      return { resources: [...known.values()].flat(), isNew: gone.length + fresh.length > 0 };
    },
  };
};
