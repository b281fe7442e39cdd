import { parseZone } from "../schedule/zone.ts";
import { DAY_MS, MINUTE_MS } from "../time.ts";

/** Hours in which `notify` waits. Over midnight when `fromMinute` is the later one; never the whole day. */
export interface QuietHours {
  /** Minutes of the day by the zone's clock; from is quiet, until is not. */
  readonly fromMinute: number;
  readonly untilMinute: number;
  readonly timezone: string;
}

export const isQuiet = ({ fromMinute, untilMinute, timezone }: QuietHours, atMs: number): boolean => {
  const wallMs = atMs + parseZone(timezone).offsetAt(atMs);
  const minute = Math.floor((((wallMs % DAY_MS) + DAY_MS) % DAY_MS) / MINUTE_MS);
  return fromMinute < untilMinute
    ? fromMinute <= minute && minute < untilMinute
    : fromMinute <= minute || minute < untilMinute;
};
