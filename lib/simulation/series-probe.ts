import { SERIES_KEY, seriesKey } from "../core/items.ts";
import { registeredIn, SERIES_KINDS, type SeriesName, seriesIn } from "../core/runs/series.ts";
import type { Item, Key } from "../core/write.ts";

const nameIn = ({ pk, sk }: Key): SeriesName | undefined => {
  const kind = SERIES_KINDS.find((known) => seriesKey({ subject: "", kind: known }).sk === sk);
  return kind && { kind, subject: pk.slice(seriesKey({ subject: "", kind }).pk.length) };
};

const onRegistry = (after: Item): string | undefined => {
  for (const [name, taken] of Object.entries(after)) {
    if (!name.startsWith("p#")) continue;
    const listed = registeredIn(after)
      .filter(({ pool }) => `p#${pool}` === name)
      .reduce((sum, { places }) => sum + places, 0);
    if (taken !== listed) return `the registry counts ${taken} places of ${name} and lists ${listed}`;
  }
  return undefined;
};

/** What no write may ever do to a series, or to the list of those that go on. */
export const seriesViolation = (key: Key, before: Item | undefined, after: Item): string | undefined => {
  if (key.pk === SERIES_KEY.pk && key.sk === SERIES_KEY.sk) return onRegistry(after);
  const name = nameIn(key);
  if (name === undefined) return undefined;
  const [was, is] = [seriesIn(name, before), seriesIn(name, after)];
  if (is === undefined) return undefined;
  const text = `${is.kind} of ${is.subject}`;
  if (Number(after["held"]) !== is.handed.length) {
    return `${text} counts ${after["held"]} runs on their way and lists ${is.handed.length}`;
  }
  if (is.handed.length > is.parallel) return `${text} has ${is.handed.length} runs on their way`;
  if (was?.id === is.id && is.cursor < was.cursor)
    return `${text} went back from ${was.cursor} to ${is.cursor}`;
  if (was !== undefined && was.id !== is.id && was.state === "open")
    return `${text} was begun over an open one`;
  return is.state !== "open" && is.handed.length > 0 ? `${text} ended before its runs` : undefined;
};
