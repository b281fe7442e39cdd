import { DeleteItemCommand, PutItemCommand } from "@aws-sdk/client-dynamodb";
import { marshall } from "@aws-sdk/util-dynamodb";
import { DAY_MS, localDate } from "./calendar.ts";
import { fillOnce } from "./demo.ts";
import { db, type Item, ifItHolds, itemsOf, LAST, TableName } from "./table.ts";

export interface Session {
  readonly pk: string;
  readonly sk: string;
}

export interface Digest {
  /** The date whose notes these are. */
  readonly notesOf: string;
  readonly lines: readonly string[];
}

const store = {
  /** Sessions last used before the instant. */
  async *sessionsBefore(until: Date, signal?: AbortSignal): AsyncGenerator<Session> {
    const range = { pk: "session", to: until.toISOString() };
    for await (const { pk, sk } of itemsOf(range, signal)) yield { pk, sk };
  },

  /** True for the one caller that really deleted it, so that a count of them is true. */
  async deleteSession({ pk, sk }: Session): Promise<boolean> {
    const remove = new DeleteItemCommand({
      TableName,
      Key: marshall({ pk, sk }),
      ConditionExpression: "attribute_exists(pk)",
    });
    return await ifItHolds(db.send(remove));
  },

  async notesOf(date: string, signal?: AbortSignal): Promise<readonly string[]> {
    const texts: string[] = [];
    for await (const { text } of itemsOf({ pk: `note#${date}`, to: LAST }, signal)) texts.push(String(text));
    return texts;
  },

  /** Puts the digest in the place of any earlier one of the date. */
  async writeDigest(date: string, { notesOf, lines }: Digest): Promise<void> {
    const Item = marshall({ pk: "digest", sk: date, notesOf, lines: [...lines] });
    await db.send(new PutItemCommand({ TableName, Item }));
  },
};

export type NotesStore = typeof store;

/** A slot runs until it is 30 days old, and then still finds sessions that are 30 days older than it. */
const SESSIONS = { days: 90, every: 3 };
const NOTES = { days: 33, aDay: 3 };

const seedItems = (now: Date): readonly Item[] => {
  const dateBack = (days: number): string => localDate(new Date(now.getTime() - days * DAY_MS));
  const sessions = Array.from({ length: SESSIONS.days / SESSIONS.every }, (_, n) => ({
    pk: "session",
    sk: `${dateBack((n + 1) * SESSIONS.every)}T00:00:00.000Z#demo`,
  }));
  const notes = Array.from({ length: NOTES.days * NOTES.aDay }, (_, n) => {
    const date = dateBack(Math.floor(n / NOTES.aDay));
    return {
      pk: `note#${date}`,
      sk: `demo-${n % NOTES.aDay}`,
      text: `Note ${(n % NOTES.aDay) + 1} of ${date}`,
    };
  });
  return [...sessions, ...notes];
};

const fillNotes = fillOnce("done", seedItems);

/** Sessions, notes and digests. */
export const openNotesStore = async (): Promise<NotesStore> => {
  await fillNotes();
  return store;
};
