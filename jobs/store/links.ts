import { UpdateItemCommand } from "@aws-sdk/client-dynamodb";
import { marshall } from "@aws-sdk/util-dynamodb";
import { fillOnce, isEmbedded } from "./demo.ts";
import { openPages } from "./pages.ts";
import { db, type Item, ifItHolds, itemsOf, LAST, TableName } from "./table.ts";

export interface Link {
  readonly id: string;
  /** As the note has it. */
  readonly url: string;
  /** Where to ask for it: the same, but for the demo's own pages. */
  readonly address: string;
}

/** What became of the request: the answer's status, or why there was none. */
export type Found = { readonly status: number } | { readonly problem: string };

const DEMO_ORIGIN = "http://pages.example";

const links = {
  async *all(signal?: AbortSignal): AsyncGenerator<Link> {
    const pages = isEmbedded() ? await openPages() : DEMO_ORIGIN;
    for await (const item of itemsOf({ pk: "link", to: LAST }, signal)) {
      const url = String(item["url"]);
      yield { id: String(item["sk"]), url, address: url.replace(DEMO_ORIGIN, pages) };
    }
  },

  /** The run of a later slot knows better; where it has written already, this one does not. */
  async store({ id }: Link, found: Found, slot: Date): Promise<void> {
    const value = "status" in found ? found.status : found.problem;
    const [kept, gone] = "status" in found ? ["#status", "problem"] : ["problem", "#status"];
    const update = new UpdateItemCommand({
      TableName,
      Key: marshall({ pk: "link", sk: id }),
      UpdateExpression: `SET ${kept} = :value, checkedAt = :slot REMOVE ${gone}`,
      ConditionExpression: "attribute_exists(pk) AND (attribute_not_exists(checkedAt) OR checkedAt <= :slot)",
      ExpressionAttributeNames: { "#status": "status" },
      ExpressionAttributeValues: marshall({ ":value": value, ":slot": slot.toISOString() }),
    });
    await ifItHolds(db.send(update));
  },
};

export type Links = typeof links;

const fillLinks = fillOnce("links", (): readonly Item[] =>
  ["welcome", "recipes", "travel", "broken", "books", "music"].map((page, n) => ({
    pk: "link",
    sk: `demo-${n}`,
    url: `${DEMO_ORIGIN}/${page}`,
  })),
);

/** The links that the notes have, each with what its last check found. */
export const openLinks = async (): Promise<Links> => {
  await fillLinks();
  return links;
};
