import { systemClock, systemTimers } from "../../lib/adapters/system/system.ts";
import { makeThreadAttempts } from "../../lib/adapters/thread/thread-attempts.ts";
import { QUIET_SERVICES } from "./quiet-services.ts";

/** Runs a handler that no V8 can stop in a thread; ends by SIGKILL when told that it will not stop. */
const attempts = makeThreadAttempts({
  jobsFile: String(process.argv[2]),
  isolation: "thread",
  memoryMb: 256,
  clock: systemClock,
  timers: systemTimers,
  onUnstoppable: () => process.kill(process.pid, "SIGKILL"),
});
await attempts.ready();
const request = {
  job: "endless",
  runId: "endless~20261130T000000Z",
  slotMs: 0,
  attempt: 1,
  trigger: "manual",
  input: null,
  timeoutMs: 3_000,
};
attempts.start(request, QUIET_SERVICES);
