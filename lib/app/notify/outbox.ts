import type { Alert } from "../../core/alerts/alert.ts";
import { storeAlert } from "../../core/alerts/outbox.ts";
import type { Table } from "../../ports/table.ts";

/**
 * Stores an alert; the notifier delivers it to every channel of its topic within the next minute. One with the same
 * id changes nothing, so whoever is not sure that it was stored stores it again.
 * @throws Unavailable when the table does not answer
 */
export const putAlert = async (table: Table, alert: Alert): Promise<void> => {
  await table.write(storeAlert(alert));
};
