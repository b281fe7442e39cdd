import type { Occurrence } from "../../core/identity.ts";
import { expiresAtS, sideKey } from "../../core/items.ts";
import type { Json } from "../../core/json.ts";
import { isPlain } from "../../core/plain-json.ts";
import { set } from "../../core/write.ts";
import type { Table } from "../../ports/table.ts";

/**
 * RUN must stay under 1 KB, since each write on it is billed by its whole size. So only so many bytes of JSON lie in
 * it; what is bigger, or no plain attribute, stands apart, under a name that no later attempt writes to.
 */
const INLINE_BYTES = 256;

export const fitsInline = (value: Json | undefined): boolean =>
  value === undefined || (Buffer.byteLength(JSON.stringify(value)) <= INLINE_BYTES && isPlain(value));

/** Stores a value beside its run, as JSON text; written before the record that points to it. */
export const storeAside = async (
  table: Table,
  occurrence: Occurrence,
  name: string,
  value: Json,
  nowMs: number,
): Promise<void> => {
  await table.write({
    key: sideKey(occurrence, name),
    changes: [set("value", JSON.stringify(value)), set("expiresAtS", expiresAtS(nowMs))],
  });
};

/** The stored value; undefined when nothing was stored under the name. */
export const readAside = async (
  table: Table,
  occurrence: Occurrence,
  name: string,
): Promise<Json | undefined> => {
  const item = await table.get(sideKey(occurrence, name), { consistent: true });
  const text = item?.["value"];
  return typeof text === "string" ? (JSON.parse(text) as Json) : undefined;
};
