/** To be imported before the module that runs handlers in a thread: in it `Date` shows the simulated time. */
import { parentPort } from "node:worker_threads";
import type { ToThread } from "../adapters/thread/messages.ts";

const RealDate = Date;
const realNow = RealDate.now;
/** Until the first attempt begins there is no other time than the real one. */
let aheadMs = 0;
const now = (): number => realNow() + aheadMs;

const VirtualDate = new Proxy(RealDate, {
  apply: () => new RealDate(now()).toString(),
  construct: (target, given, newTarget) =>
    Reflect.construct(target, given.length === 0 ? [now()] : given, newTarget),
});
RealDate.now = now;
RealDate.prototype.constructor = VirtualDate;
globalThis.Date = VirtualDate;

// Each attempt begins at its instant; while it works, its clock goes as fast as any.
parentPort?.on("message", (message: ToThread) => {
  if (message.kind === "run") aheadMs = message.endsAtMs - message.request.timeoutMs - realNow();
});
