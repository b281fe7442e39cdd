import type { Manifest } from "../core/job.ts";
import type { StackConfig } from "./config.ts";
import {
  deadLettersFunction,
  dispatcherFunction,
  type WorkerFunctionOptions,
  watchdogFunction,
  workerFunction,
} from "./functions.ts";
import { operateApp } from "./operate.ts";

/** Every function of a deployment, for the embedded stack: the same ones that Lambda runs. */
export const composeStack = (config: StackConfig, manifest: Manifest) => {
  const watchdog = watchdogFunction(config, manifest);
  const operate = operateApp(config, manifest);
  return {
    dispatcher: dispatcherFunction(config, manifest),
    deadLetters: deadLettersFunction(config, manifest),
    watchdog: () => watchdog({}, { awsRequestId: "embedded" }),
    operate: { fetch: async (request: Request): Promise<Response> => operate.fetch(request) },
    worker: (options: WorkerFunctionOptions) => workerFunction(config, manifest, options),
  };
};
