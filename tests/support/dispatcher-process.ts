import type { StackConfig } from "../../lib/compose/config.ts";
import { dispatcherFunction } from "../../lib/compose/functions.ts";
import type { Manifest } from "../../lib/core/jobs/job.ts";

interface Start {
  readonly config: StackConfig;
  readonly manifest: Manifest;
}

/** A dispatcher in a process of its own: told its deployment once, then one event at a time. */
let handler: ReturnType<typeof dispatcherFunction> | undefined;

process.on("message", async (message: Start | { readonly event: unknown; readonly requestId: string }) => {
  if ("config" in message) {
    handler = dispatcherFunction(message.config, message.manifest);
    process.send?.("ready");
    return;
  }
  await handler?.(message.event, { awsRequestId: message.requestId });
  process.send?.("dispatched");
});
