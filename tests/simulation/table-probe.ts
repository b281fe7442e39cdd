import { isTerminal } from "../../lib/core/run.ts";
import type { Item, Write } from "../../lib/core/write.ts";
import type { Table, WriteAnswer } from "../../lib/ports/table.ts";

const stateOf = (item: Item | undefined): string | undefined =>
  item?.["st"] === undefined ? undefined : String(item["st"]);

/** What no write may ever do to a run's record. */
const violationOf = (before: Item | undefined, after: Item): string | undefined => {
  const name = `${after["pk"]} ${after["sk"]}`;
  const [was, is] = [stateOf(before), stateOf(after)];
  const retried = is === "queued" && Number(after["ep"]) === Number(before?.["ep"]) + 1;
  const mayLeave = retried && was !== "succeeded";
  if (was !== undefined && isTerminal(was) && is !== was && !mayLeave) return `${name}: ${was} became ${is}`;
  if (Number(after["fence"] ?? 0) < Number(before?.["fence"] ?? 0)) return `${name}: the fence went back`;
  if (is === "succeeded" && was !== is && (was !== "running" || after["fence"] !== before?.["fence"])) {
    return `${name}: succeeded from ${was}, not by its holder`;
  }
  return undefined;
};

/** Watches every write on a run for what may never happen. */
export const tableProbe = (table: Table) => {
  const violations: string[] = [];
  const write = async (wanted: Write): Promise<WriteAnswer> => {
    const before = await table.get(wanted.key, { consistent: true });
    const answer = await table.write(wanted);
    if (answer.written && wanted.key.sk.startsWith("R#")) {
      const violation = violationOf(before, answer.item);
      if (violation !== undefined) violations.push(violation);
    }
    return answer;
  };
  return { violations, write };
};
