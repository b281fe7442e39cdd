import { Buffer } from "node:buffer";

/**
 * What answers in place of DynamoDB and SQS, inside the process and at once: both sides of a comparison do all that an
 * SDK client does but the network. Of the table it keeps items and applies updates; conditions always hold.
 */

type Attribute = { readonly [type: string]: unknown };
type Item = { [name: string]: Attribute };

interface Call {
  readonly Key?: Item;
  readonly Item?: Item;
  readonly UpdateExpression?: string;
  readonly ExpressionAttributeNames?: { readonly [placeholder: string]: string };
  readonly ExpressionAttributeValues?: { readonly [placeholder: string]: Attribute };
  readonly ReturnValues?: string;
  readonly MessageBody?: string;
  readonly Entries?: readonly { readonly Id: string }[];
}

interface Request {
  readonly headers: { readonly [name: string]: string };
  readonly body?: string | Uint8Array;
}

const answerOf = (body: object) => ({
  response: {
    statusCode: 200,
    headers: { "content-type": "application/x-amz-json-1.0" },
    body: Buffer.from(JSON.stringify(body)),
  },
});

const callOf = ({ body = "{}" }: Request): Call =>
  JSON.parse(typeof body === "string" ? body : new TextDecoder().decode(body));

const keyText = ({ pk, sk, id }: Item): string => JSON.stringify(id ?? [pk, sk]);

/** Its clauses with their parts; commas inside parentheses part nothing. */
const clausesOf = (expression: string): readonly (readonly [clause: string, parts: readonly string[]])[] =>
  [...expression.matchAll(/\b(SET|REMOVE|ADD|DELETE)\s+(.*?)(?=\s+(?:SET|REMOVE|ADD|DELETE)\s|$)/g)].map(
    ([, clause = "", parts = ""]) => [clause, parts.split(/,\s*(?![^(]*\))/)],
  );

const updated = (item: Item, call: Call): void => {
  const names = call.ExpressionAttributeNames ?? {};
  const values = call.ExpressionAttributeValues ?? {};
  const nameOf = (text: string): string => names[text] ?? text;
  const attributeOf = (text: string): Attribute => {
    const [first = "", second] = text.split(" + ");
    const fallback = /^if_not_exists\(([^,]+), ([^)]+)\)$/.exec(first);
    const base = fallback
      ? (item[nameOf(fallback[1] ?? "")] ?? values[fallback[2] ?? ""])
      : (values[first] ?? item[nameOf(first)]);
    if (second === undefined) return base ?? { NULL: true };
    return { N: String(Number(base?.["N"]) + Number(values[second]?.["N"])) };
  };
  for (const [clause, parts] of clausesOf(call.UpdateExpression ?? ""))
    for (const part of parts) {
      const [path = "", value = ""] = part.split(" = ");
      if (clause === "SET") item[nameOf(path)] = attributeOf(value);
      else if (clause === "REMOVE") delete item[nameOf(path)];
      else throw new Error(`the stub knows no ${clause}`);
    }
};

const threadCpuUs = (): number => {
  const { user, system } = process.threadCpuUsage();
  return user + system;
};

/** For the `requestHandler` of both clients. */
export const stubTransport = () => {
  const items = new Map<string, Item>();
  const sent: string[] = [];
  let calls = 0;
  let ownUs = 0;
  /** One call; what answering it takes is none of the caller's time. */
  const counted = <Answer>(act: () => Answer): Answer => {
    const before = threadCpuUs();
    calls += 1;
    const answer = act();
    ownUs += threadCpuUs() - before;
    return answer;
  };
  const operations: { readonly [target: string]: (call: Call) => object } = {
    GetItem: ({ Key = {} }) => ({ Item: items.get(keyText(Key)) }),
    PutItem: ({ Item = {} }) => {
      items.set(keyText(Item), Item);
      return {};
    },
    UpdateItem: (call) => {
      const key = call.Key ?? {};
      const item = items.get(keyText(key)) ?? { ...key };
      items.set(keyText(key), item);
      updated(item, call);
      return call.ReturnValues === "ALL_NEW" ? { Attributes: item } : {};
    },
    SendMessage: ({ MessageBody = "" }) => {
      sent.push(MessageBody);
      return { MessageId: String(sent.length) };
    },
    SendMessageBatch: ({ Entries = [] }) => ({
      Successful: Entries.map(({ Id }) => ({ Id, MessageId: Id, MD5OfMessageBody: "" })),
      Failed: [],
    }),
  };
  const answer = (operation: string, call: Call): object => {
    const act = operations[operation];
    if (act === undefined) throw new Error(`the stub knows no ${operation}`);
    return act(call);
  };
  return {
    /** In place of a client's `send`: the same without the SDK's own work. */
    send: async (command: { readonly input: object }) =>
      counted(() => answer(command.constructor.name.replace(/Command$/, ""), command.input)),
    /** Bodies of messages, in order. */
    sent,
    calls: (): number => calls,
    /** Processor time of the stub itself. */
    ownUs: (): number => ownUs,
    handler: {
      handle: async (request: Request) => {
        const operation = request.headers["x-amz-target"]?.split(".")[1] ?? "";
        return counted(() => answerOf(answer(operation, callOf(request))));
      },
      destroy: () => undefined,
      metadata: { handlerProtocol: "h1" },
      updateHttpClientConfig: () => undefined,
      httpHandlerConfigs: () => ({}),
    },
  };
};
