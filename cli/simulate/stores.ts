import { systemTimers } from "../../lib/adapters/system/system.ts";
import { attachedEndpoints } from "../dev/endpoints.ts";
import { adoptEnvironment, childEnvironment } from "../dev/environment.ts";
import { ManagedChild } from "../dev/managed-child.ts";
import type { EmulatorsStart } from "../dev/messages.ts";
import { findStores } from "../dev/processes.ts";

const EMULATORS = new URL(
  `../dev/emulators${import.meta.url.endsWith(".ts") ? ".ts" : ".js"}`,
  import.meta.url,
);

/**
 * The stores that handlers find, as in `dev`: our own emulators, empty, or what `AWS_ENDPOINT_URL` attaches. From here
 * on nothing in this process knows the caller's AWS account.
 * @throws InvalidInput for an endpoint beyond this machine
 */
export const isolate = async (folder: string, note: (text: string) => void) => {
  const attached = attachedEndpoints(process.env, false);
  const { endpoints, ...ports } = await findStores(attached);
  const environment = childEnvironment(process.env, endpoints, attached.dynamodb === undefined);
  adoptEnvironment(environment);
  let emulators: ManagedChild<EmulatorsStart> | undefined;
  return {
    begin: async (): Promise<void> => {
      if (ports.dynamodbPort === undefined && ports.sqsPort === undefined) return;
      emulators = new ManagedChild<EmulatorsStart>({
        name: "the emulator process",
        entry: EMULATORS,
        environment,
        timers: systemTimers,
        report: note,
        output: () => undefined,
        start: async () => ({ start: { folder, ...ports } }),
      });
      await emulators.begin();
    },
    end: async (): Promise<void> => emulators?.stop(),
  };
};
