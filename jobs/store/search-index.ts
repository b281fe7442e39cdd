import { paginateQuery, QueryCommand } from "@aws-sdk/client-dynamodb";
import { marshall, unmarshall } from "@aws-sdk/util-dynamodb";
import { fillOnce } from "./demo.ts";
import { db, type Item, putAll, TableName } from "./table.ts";

export interface Note {
  readonly id: string;
  readonly text: string;
}

/** Those that are worth a search, each once. */
const wordsOf = (text: string): ReadonlySet<string> => new Set(text.toLowerCase().match(/\p{L}{4,}/gu));

const ARCHIVE = {
  TableName,
  KeyConditionExpression: "pk = :pk AND sk > :after",
};
const after = (id: string) => marshall({ ":pk": "archive", ":after": id });

const index = {
  async countNotes(abortSignal: AbortSignal): Promise<number> {
    const query = { ...ARCHIVE, ExpressionAttributeValues: after(" "), Select: "COUNT" } as const;
    let count = 0;
    for await (const page of paginateQuery({ client: db }, query, { abortSignal })) count += page.Count ?? 0;
    return count;
  },

  /** In order of their ids; none = that was the last. */
  async notesAfter(id: string, limit: number, abortSignal: AbortSignal): Promise<readonly Note[]> {
    const query = { ...ARCHIVE, ExpressionAttributeValues: after(id), Limit: limit };
    const { Items = [] } = await db.send(new QueryCommand(query), { abortSignal });
    return Items.map((item) => unmarshall(item)).map(({ sk, text }) => ({
      id: String(sk),
      text: String(text),
    }));
  },

  /** Puts the notes' entries in the place of any earlier ones. False = the table was too busy to take them all. */
  add: (notes: readonly Note[], signal: AbortSignal): Promise<boolean> =>
    putAll(
      notes.flatMap(({ id, text }) => [...wordsOf(text)].map((word) => ({ pk: `index#${word}`, sk: id }))),
      signal,
    ),
};

export type SearchIndex = typeof index;

const DEMO_NOTES = 5_000;
const TOPICS = ["garden", "budget", "travel", "recipe", "music", "family", "school", "books"];

/** Only when the index is first built: no other job is kept waiting by so many. */
const fillArchive = fillOnce("archive", (): readonly Item[] =>
  Array.from({ length: DEMO_NOTES }, (_, n) => ({
    pk: "archive",
    sk: String(n).padStart(6, "0"),
    text: `${n}: ${TOPICS[n % TOPICS.length]}`,
  })),
);

/** All notes there ever were, and the index by which they are found. */
export const openSearchIndex = async (): Promise<SearchIndex> => {
  await fillArchive();
  return index;
};
