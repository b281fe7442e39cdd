const formats = new Map<string, Intl.DateTimeFormat>();

const formatOf = (zone: string): Intl.DateTimeFormat => {
  const known = formats.get(zone);
  if (known !== undefined) return known;
  const format = new Intl.DateTimeFormat("en-US", {
    timeZone: zone,
    hourCycle: "h23",
    year: "numeric",
    month: "2-digit",
    day: "2-digit",
    hour: "2-digit",
    minute: "2-digit",
    second: "2-digit",
  });
  formats.set(zone, format);
  return format;
};

/** `2026-10-08 10:00` on the clock of the zone; seconds only where there are any. */
export const localText = (iso: string, zone: string): string => {
  const parts = new Map(
    formatOf(zone)
      .formatToParts(Date.parse(iso))
      .map(({ type, value }) => [type, value]),
  );
  const part = (type: Intl.DateTimeFormatPartTypes): string => parts.get(type) ?? "";
  const seconds = part("second") === "00" ? "" : `:${part("second")}`;
  return `${part("year")}-${part("month")}-${part("day")} ${part("hour")}:${part("minute")}${seconds}`;
};

/** In the job's zone and in UTC: `2026-10-08 10:00 Asia/Shanghai (2026-10-08T02:00:00Z)`. */
export const bothTexts = (iso: string | null, zone: string): string => {
  if (iso === null) return "-";
  return zone === "UTC" ? iso : `${localText(iso, zone)} ${zone} (${iso})`;
};

/** `850 ms`, `12.3 s`, `4 min 05 s`, `2 h 03 min`. */
export const spanText = (spanMs: number): string => {
  if (spanMs < 1_000) return `${spanMs} ms`;
  if (spanMs < 60_000) return `${(Math.floor(spanMs / 100) / 10).toFixed(1)} s`;
  const seconds = Math.floor(spanMs / 1_000);
  const two = (value: number): string => String(value).padStart(2, "0");
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min ${two(seconds % 60)} s`;
  return `${Math.floor(seconds / 3_600)} h ${two(Math.floor((seconds % 3_600) / 60))} min`;
};
