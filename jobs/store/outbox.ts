import { PutItemCommand, UpdateItemCommand } from "@aws-sdk/client-dynamodb";
import { marshall } from "@aws-sdk/util-dynamodb";
import { DAY_MS, MINUTE_MS } from "./calendar.ts";
import { fillOnce } from "./demo.ts";
import { db, type Item, ifItHolds, itemsOf, TableName } from "./table.ts";

export interface Reminder {
  /** Its own in all runs, so that a receiver can drop repeats by it. */
  readonly id: string;
  readonly text: string;
}

/** Longer than an attempt of the job can last: whoever has held a reminder for longer is gone. */
const LEASE_MS = 5 * MINUTE_MS;

const change = (id: string, write: string, condition: string, values: object): Promise<boolean> =>
  ifItHolds(
    db.send(
      new UpdateItemCommand({
        TableName,
        Key: marshall({ pk: "reminder", sk: id }),
        UpdateExpression: write,
        ConditionExpression: condition,
        ExpressionAttributeNames: { "#state": "state" },
        ExpressionAttributeValues: marshall(values),
      }),
    ),
  );

const outbox = {
  /** Not yet sent, and due in the day up to the instant: what is later than that is of no use to anybody. */
  async *due(at: Date, signal?: AbortSignal): AsyncGenerator<Reminder> {
    const from = new Date(at.getTime() - DAY_MS).toISOString();
    for await (const item of itemsOf({ pk: "reminder", from, to: `${at.toISOString()}~` }, signal)) {
      if (item["state"] !== "sent") yield { id: String(item["sk"]), text: String(item["text"]) };
    }
  },

  /** `pending` to `sending`, or on with what this run began, or what another began and left. False = not ours. */
  take: ({ id }: Reminder, holder: string): Promise<boolean> =>
    change(
      id,
      "SET #state = :sending, holder = :holder, leaseUntil = :leaseUntil",
      "#state = :pending OR (#state = :sending AND (holder = :holder OR leaseUntil < :now))",
      {
        ":pending": "pending",
        ":sending": "sending",
        ":holder": holder,
        ":now": Date.now(),
        ":leaseUntil": Date.now() + LEASE_MS,
      },
    ),

  /** `sending` to `sent`; only its holder may. */
  markSent: ({ id }: Reminder, holder: string): Promise<boolean> =>
    change(id, "SET #state = :sent REMOVE leaseUntil", "#state = :sending AND holder = :holder", {
      ":sending": "sending",
      ":sent": "sent",
      ":holder": holder,
    }),

  /** In the place of a mail service: like a good one, it takes each id once. */
  async deliver({ id, text }: Reminder): Promise<void> {
    const Item = marshall({ pk: "delivery", sk: id, text });
    const put = { TableName, Item, ConditionExpression: "attribute_not_exists(pk)" };
    await ifItHolds(db.send(new PutItemCommand(put)));
  },
};

export type Outbox = typeof outbox;

const DEMO = { count: 300, everyMs: 5 * MINUTE_MS, passed: 12 };

/** One every five minutes, from an hour ago to a day ahead. */
const fillOutbox = fillOnce("outbox", (now: Date): readonly Item[] =>
  Array.from({ length: DEMO.count }, (_, n) => {
    const due = new Date(now.getTime() + (n - DEMO.passed) * DEMO.everyMs).toISOString();
    return { pk: "reminder", sk: `${due}#demo`, state: "pending", text: `Reminder ${n + 1}` };
  }),
);

/** Reminders that wait to be sent: `pending`, then `sending`, then `sent`. */
export const openOutbox = async (): Promise<Outbox> => {
  await fillOutbox();
  return outbox;
};
