import { expect, test } from "vitest";
import { memoryTable } from "../../../lib/adapters/memory/memory-table.ts";
import { putAlert } from "../../../lib/app/notify/outbox.ts";
import type { Alert } from "../../../lib/core/alerts/alert.ts";
import { readAlert } from "../../../lib/core/alerts/outbox.ts";
import { ANY_ALERT, WAITING_ALERTS } from "../../../lib/core/items.ts";

const atMs = Date.parse("2026-10-08T02:00:00Z");
const alert: Alert = {
  id: "report~3",
  topic: "notify",
  kind: "failed",
  atMs,
  reason: "it threw",
  job: "report",
};

const waiting = (table: ReturnType<typeof memoryTable>) => table.query({ ...ANY_ALERT, pk: WAITING_ALERTS });

test("an alert that is stored twice waits once, as it was stored first", async () => {
  const table = memoryTable();
  await putAlert(table, alert);
  await putAlert(table, { ...alert, reason: "said again" });
  expect((await waiting(table)).map(readAlert)).toEqual([alert]);
});

test("a long error is cut, so that no alert is too large for a chat", async () => {
  const table = memoryTable();
  await putAlert(table, { ...alert, error: { name: "Error", message: "x".repeat(100_000) } });
  const [item] = await waiting(table);
  const message = item && readAlert(item)?.error?.message;
  expect(message).toMatch(/^x{900,}… \[trimmed: 100000 bytes\]$/);
  expect(Buffer.byteLength(message ?? "")).toBeLessThanOrEqual(1_000);
});
