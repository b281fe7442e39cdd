import { loadConfig } from "../lib/compose/config.ts";
import { loadManifest } from "../lib/compose/manifest-file.ts";
import { operateApp } from "../lib/compose/operate.ts";

const app = operateApp(loadConfig(process.env), loadManifest(new URL("./manifest.json", import.meta.url)));

interface OperateEvent {
  readonly method: string;
  /** With its query. */
  readonly path: string;
  readonly body?: string;
}

/** Invoked by the CLI; who may invoke it, may operate. */
export const handler = async ({ method, path, body }: OperateEvent) => {
  const answer = await app.request(path, { method, ...(body === undefined ? {} : { body }) });
  return { status: answer.status, body: await answer.text() };
};
