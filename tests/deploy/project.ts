import { appendFileSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { folderWith, ROOT, symlinkLibrary } from "../deployable/support.ts";

export const SERVICE = "check";
export const STAGE = "live";

/** Fourteen hours before UTC, so that the emulator's own scheduler, which reads every hour as UTC, lets it alone. */
const ZONE = "Pacific/Kiritimati";
const OFFSET_MS = 14 * 3_600_000;

/** The cron that strikes at that instant of every day. */
const dailyAt = (atMs: number): string => {
  const local = new Date(atMs + OFFSET_MS);
  return `${local.getUTCMinutes()} ${local.getUTCHours()} * * *`;
};

/** A value for `Fn::Sub`. */
const reference = (name: string): string => `$${`{${name}}`}`;

/** What a handler does to the world: counted in a table of the project's own, so that a repeat shows. */
const SUPPORT = `import { DynamoDBClient, GetItemCommand, UpdateItemCommand } from "@aws-sdk/client-dynamodb";

const client = new DynamoDBClient({});

export const NEEDS = {
  permissions: [{ actions: ["dynamodb:GetItem", "dynamodb:UpdateItem"], resources: "${reference("EffectsTable.Arn")}" }],
  environment: { EFFECTS_TABLE: "${reference("EffectsTable")}" },
};

export const effect = (runId) =>
  client.send(new UpdateItemCommand({
    TableName: process.env.EFFECTS_TABLE,
    Key: { id: { S: runId } },
    UpdateExpression: "ADD effects :one",
    ExpressionAttributeValues: { ":one": { N: "1" } },
  }));

/** Until somebody has put an item of that name into the table. */
export const opened = async (gate) => {
  const asked = { TableName: process.env.EFFECTS_TABLE, Key: { id: { S: gate } }, ConsistentRead: true };
  while ((await client.send(new GetItemCommand(asked))).Item === undefined)
    await new Promise((done) => setTimeout(done, 500));
};
`;

const job = (options: string, handler: string): string => `import { defineJob } from "belfry";
import { effect, NEEDS, opened } from "../effects.js";

export default defineJob({ ...NEEDS, ${options}, handler: async ({ runId, slot, attempt, previous }) => { ${handler} } });
`;

const EFFECT = "await effect(runId); return { slot: slot.toISOString() };";

interface Times {
  /** Of the first deploy's schedules. */
  readonly firstMs: number;
  /** Of those that the second deploy brings or changes. */
  readonly secondMs?: number;
}

type Files = { readonly [path: string]: string };

const at = (atMs: number): string => `schedule: "${dailyAt(atMs)}", timezone: "${ZONE}"`;

/** Pinged from outside, for one slot each day, of which any hour is early enough. */
const MONITOR = `import { monitor } from "belfry";

export default monitor({ schedule: "0 0 * * *", grace: "1 day", early: "1 day" });
`;

/** The jobs of both deploys, and those of one of them. */
const jobFiles = ({ firstMs, secondMs }: Times): Files => ({
  "jobs/elsewhere.ts": MONITOR,
  "jobs/punctual.ts": job(at(firstMs), EFFECT),
  "jobs/astray.ts": job(at(firstMs), EFFECT),
  // The emulator strikes this one, with its context attributes unfilled.
  "jobs/unfilled.ts": job(
    `schedule: "*/2 * * * *", overlap: "allow", misfire: { policy: "all", within: "1 hour" }`,
    EFFECT,
  ),
  "jobs/changing.ts": job(at(secondMs ?? firstMs + 6 * 3_600_000), EFFECT),
  "jobs/failing.ts": job(
    `retry: { retries: 2, firstWait: "1 second", factor: 1, jitter: 0 }`,
    `throw new TypeError("attempt " + attempt + " of it fails");`,
  ),
  "jobs/busy.ts": job(`overlap: "allow"`, `await opened("gate"); ${EFFECT}`),
  // So long that a second run has to wait in line.
  "jobs/line.ts": job(
    `overlap: "queue"`,
    `await new Promise((done) => setTimeout(done, 2_000)); await previous(); ${EFFECT}`,
  ),
  "jobs/sealed.ts": job(
    `pool: "vault", retry: { retries: 0, crashes: 1 }, secrets: { KEY: "secretsmanager:${SERVICE}/{stage}/key" }`,
    `await effect(runId); return { length: process.env.KEY.length };`,
  ),
  ...(secondMs === undefined
    ? {
        "jobs/leaving.ts": job(
          `retry: { retries: 3, firstWait: "30 minutes" }`,
          `throw new Error("not this time");`,
        ),
      }
    : { "jobs/added.ts": job(at(secondMs), EFFECT) }),
});

const CONFIG = `import { defineConfig, webhook } from "belfry";

export default defineConfig({
  stages: ["${STAGE}", "other"],
  pools: { default: { memory: 256, concurrency: 10 }, vault: { memory: 256, concurrency: 2 } },
  alerts: {
    secrets: {
      HOOK_URL: "secretsmanager:${SERVICE}/{stage}/hook#url",
      HOOK_KEY: "secretsmanager:${SERVICE}/{stage}/hook#key",
    },
    notify: [webhook({ url: "HOOK_URL", secret: "HOOK_KEY" })],
  },
});
`;

const SERVERLESS = `service: ${SERVICE}
provider: { name: aws }
plugins: [belfry/serverless]
resources:
  Resources:
    EffectsTable:
      Type: AWS::DynamoDB::Table
      Properties:
        BillingMode: PAY_PER_REQUEST
        AttributeDefinitions: [{ AttributeName: id, AttributeType: S }]
        KeySchema: [{ AttributeName: id, KeyType: HASH }]
`;

const writeJobs = (folder: string, times: Times): void => {
  rmSync(join(folder, "jobs"), { recursive: true, force: true });
  mkdirSync(join(folder, "jobs"));
  for (const [path, content] of Object.entries(jobFiles(times))) writeFileSync(join(folder, path), content);
};

/** Somebody's project, with a table of its own beside ours. */
export const makeProject = (times: Times) => {
  const folder = folderWith({
    "package.json": `{"name": "${SERVICE}", "private": true, "type": "module"}`,
    "serverless.yml": SERVERLESS,
    "belfry.config.ts": CONFIG,
    "effects.js": SUPPORT,
  });
  symlinkLibrary(folder);
  symlinkSync(join(ROOT, "node_modules", "@aws-sdk"), join(folder, "node_modules", "@aws-sdk"));
  writeJobs(folder, times);
  return {
    folder,
    /** From now on the stage uses that table. */
    takeTable: (table: string): void =>
      appendFileSync(join(folder, "serverless.yml"), `custom: { belfry: { table: ${table} } }\n`),
    change: (changed: Required<Times>): void => writeJobs(folder, changed),
  };
};
