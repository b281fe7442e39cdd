import { arnHere, placeholder, sub, type Value } from "./cloudformation.ts";
import type { Stack } from "./stack.ts";
import { TABLE } from "./table.ts";

const tableArn = (name: string): Value => arnHere("dynamodb", `table/${name}`);

const isNode = (value: Value): value is { readonly [name: string]: Value } =>
  typeof value === "object" && !Array.isArray(value);

/** The text of `Fn::Sub` with the table's name and ARN filled in. */
const filled = (text: string, name: string): string => {
  const arn = `arn:${placeholder("AWS::Partition")}:dynamodb:${placeholder("AWS::Region")}:${placeholder("AWS::AccountId")}:table/${name}`;
  return text.replaceAll(placeholder(`${TABLE}.Arn`), arn).replaceAll(placeholder(TABLE), name);
};

/** The same value, where every reference to the stack's own table means the one of that name. */
const meaning = (value: Value, name: string): Value => {
  if (Array.isArray(value)) return value.map((each: Value) => meaning(each, name));
  if (!isNode(value)) return value;
  const { Ref, "Fn::GetAtt": attribute, "Fn::Sub": text } = value;
  if (Ref === TABLE) return name;
  if (Array.isArray(attribute) && attribute[0] === TABLE) return tableArn(name);
  if (typeof text === "string") return sub(filled(text, name));
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, meaning(each, name)]));
};

const meaningOf = <Properties extends { readonly [name: string]: Value }>(
  properties: Properties,
  name: string,
) => meaning(properties, name) as Properties;

/** The stack on a table that is there already: one that a removed stack has left, or that was restored. */
export const onKeptTable = ({ functions, resources, outputs }: Stack, name: string): Stack => {
  const others = Object.entries(resources).filter(([id]) => id !== TABLE);
  return {
    functions: functions.map((each) => ({ ...each, properties: meaningOf(each.properties, name) })),
    resources: Object.fromEntries(
      others.map(([id, each]) => [id, { ...each, Properties: meaningOf(each.Properties, name) }]),
    ),
    outputs: meaning(outputs, name) as typeof outputs,
  };
};
