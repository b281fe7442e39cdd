import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import type { SQSClient } from "@aws-sdk/client-sqs";
import { unmarshall } from "@aws-sdk/util-dynamodb";
import type { Item } from "../../lib/core/write.ts";
import { itemBytes } from "../support/item-size.ts";

/** What went through the clients of a process. */
export interface Counts {
  /** Requests by their command, and for the table by the kind of item. */
  readonly requests: { [name: string]: number };
  /** Bytes of the largest item that a write left behind, by kind. */
  readonly largest: { [kind: string]: number };
}

const KINDS: { readonly [start: string]: string } = {
  R: "RUN",
  B: "BUCKET",
  S: "STRIDE",
  P: "PAGE",
  I: "SIDE",
};

const kindOf = (sk: unknown): string => KINDS[String(sk).slice(0, 1)] ?? "other";

interface Call {
  readonly Key?: { readonly sk?: { readonly S?: string } };
}

/** Counts every request of these clients, and measures what the writes leave behind. */
export const counting = ({ db, sqs }: { readonly db: DynamoDBClient; readonly sqs: SQSClient }): Counts => {
  const counts: Counts = { requests: {}, largest: {} };
  const note = (name: string): void => {
    counts.requests[name] = (counts.requests[name] ?? 0) + 1;
  };
  db.middlewareStack.add(
    (next, { commandName }) =>
      async (args) => {
        const kind = kindOf((args.input as Call).Key?.sk?.S);
        note(`${String(commandName).replace("Command", "")} ${kind}`);
        const answer = await next(args);
        const attributes = (answer.output as { readonly Attributes?: Parameters<typeof unmarshall>[0] })
          .Attributes;
        if (attributes !== undefined) {
          const bytes = itemBytes(unmarshall(attributes) as Item);
          counts.largest[kind] = Math.max(counts.largest[kind] ?? 0, bytes);
        }
        return answer;
      },
    { step: "initialize" },
  );
  sqs.middlewareStack.add(
    (next, { commandName }) =>
      (args) => {
        note(String(commandName).replace("Command", ""));
        return next(args);
      },
    { step: "initialize" },
  );
  return counts;
};

export const added = (all: readonly Counts[]): Counts => {
  const sum: Counts = { requests: {}, largest: {} };
  for (const { requests, largest } of all) {
    for (const [name, count] of Object.entries(requests))
      sum.requests[name] = (sum.requests[name] ?? 0) + count;
    for (const [kind, bytes] of Object.entries(largest))
      sum.largest[kind] = Math.max(sum.largest[kind] ?? 0, bytes);
  }
  return sum;
};
