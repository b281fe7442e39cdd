import type { Hono } from "hono";
import { makePing } from "../app/monitors/ping.ts";
import { messageOf, Unavailable } from "../core/errors.ts";
import type { JobDefinition, Manifest } from "../core/jobs/job.ts";
import { mustBeMonitor } from "../core/monitors/monitor.ts";
import { MINUTE_MS } from "../core/time.ts";
import { httpHandler } from "../inbound/pings/http-event.ts";
import { type PingSecrets, pingPath, pingRouter } from "../inbound/pings/router.ts";
import { shell } from "../inbound/shell.ts";
import type { Clock } from "../ports/clock.ts";
import type { StackConfig } from "./config.ts";
import { composeDeps, type StackDeps } from "./deps.ts";

/** Where monitors' jobs ping, and what the keys of their addresses are made of. */
export interface Pings {
  readonly url: string;
  readonly secrets: PingSecrets;
}

/** From Secrets Manager, when the first ping comes, and again where one has a key that it does not know. */
export const deployedPingSecrets = (
  { region, pings }: Pick<StackConfig, "region" | "pings">,
  clock: Clock,
): PingSecrets => {
  let last: { readonly values: readonly string[]; readonly atMs: number } | undefined;
  const read = async (): Promise<readonly string[]> => {
    if (pings === undefined) throw new Unavailable("no_secret", "BELFRY_PING_SECRET is not set");
    const { readVersions } = await import("../adapters/secrets/aws-secrets.ts");
    const values = await readVersions(pings.secretArn, region).catch((cause: unknown) => {
      throw new Unavailable("no_secret", messageOf(cause), { cause });
    });
    last = { values, atMs: clock.nowMs() };
    return values;
  };
  return {
    known: async () => last?.values ?? read(),
    renewed: async () => (last !== undefined && clock.nowMs() - last.atMs < MINUTE_MS ? last.values : read()),
  };
};

export const pingAddress =
  ({ url, secrets }: Pings) =>
  async (job: JobDefinition): Promise<string> => {
    const monitor = mustBeMonitor(job);
    return `${url}${pingPath(await secrets.renewed(), monitor)}`;
  };

export const pingApp = (deps: StackDeps, secrets: PingSecrets): Hono =>
  pingRouter({ ping: makePing(deps), jobs: deps.jobs, secrets, journal: deps.journal });

/** Behind the HTTP API of a deployment with monitors. */
export const pingFunction = (config: StackConfig, manifest: Manifest) => {
  const deps = composeDeps(config, manifest);
  const app = pingApp(deps, deployedPingSecrets(config, deps.clock));
  return shell(
    deps.journal,
    httpHandler(async (request) => app.fetch(request)),
  );
};
