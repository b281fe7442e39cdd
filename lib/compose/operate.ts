import { makeInspect } from "../app/inspect.ts";
import { makeOperator } from "../app/operator.ts";
import { makeRunByHand } from "../app/run-by-hand.ts";
import { makeSeriesActs } from "../app/series-acts.ts";
import type { Manifest } from "../core/job.ts";
import { operateRouter } from "../inbound/operate/router.ts";
import type { StackConfig } from "./config.ts";
import { composeDeps } from "./deps.ts";

/** The router that whoever looks or acts goes through. Who may pass is decided before it. */
export const operateApp = (config: StackConfig, manifest: Manifest) => {
  const deps = composeDeps(config, manifest);
  return operateRouter({
    inspect: makeInspect(deps),
    runByHand: makeRunByHand(deps),
    operator: makeOperator(deps),
    series: makeSeriesActs(deps),
    jobs: deps.jobs,
    clock: deps.clock,
    report: (error) =>
      deps.journal.notice("error", "invocation-failed", {
        why: error instanceof Error ? (error.stack ?? error.message) : String(error),
      }),
  });
};
