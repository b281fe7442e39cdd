import { once } from "node:events";
import { mkdtempSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { json, text } from "node:stream/consumers";
import { afterAll, beforeAll, expect, test } from "vitest";
import { cli, startStack } from "./stack.ts";

type Stack = Awaited<ReturnType<typeof startStack>>;

const FUNCTION = /^\/2015-03-31\/functions\/([a-z0-9-]+)\/invocations$/;

/** As the operate function does it: the event to the router, its answer as status and text. */
const operate = async ({ facts }: Stack, event: { method: string; path: string; body?: string }) => {
  const answer = await fetch(`http://127.0.0.1:${facts.port}${event.path}`, {
    method: event.method,
    headers: { authorization: `Bearer ${facts.key}`, "content-type": "application/json" },
    ...(event.body === undefined ? {} : { body: event.body }),
  });
  return { status: answer.status, body: await answer.text() };
};

const refuse = (response: ServerResponse, status: number, name: string): void => {
  response.writeHead(status, { "content-type": "application/json", "x-amzn-errortype": name });
  response.end(JSON.stringify({ message: name }));
};

const STACKS: { readonly [name: string]: string } = {
  "notes-broken": "ROLLBACK_COMPLETE",
  "notes-coming": "CREATE_IN_PROGRESS",
  "notes-leaving": "DELETE_IN_PROGRESS",
  "notes-undone": "UPDATE_ROLLBACK_COMPLETE",
};

const stackXml = (name: string): readonly [number, string] =>
  STACKS[name] === undefined
    ? [
        400,
        `<ErrorResponse><Error><Type>Sender</Type><Code>ValidationError</Code><Message>Stack with id ${name} does not exist</Message></Error></ErrorResponse>`,
      ]
    : [
        200,
        `<DescribeStacksResponse><DescribeStacksResult><Stacks><member><StackName>${name}</StackName><StackStatus>${STACKS[name]}</StackStatus></member></Stacks></DescribeStacksResult></DescribeStacksResponse>`,
      ];

/** The two calls of AWS that the command line makes, on this machine. */
const answerAsAws = (stack: Stack) => async (request: IncomingMessage, response: ServerResponse) => {
  const name = FUNCTION.exec(request.url ?? "")?.[1];
  if (name === "notes-live-belfry-operate") {
    const event = (await json(request)) as Parameters<typeof operate>[1];
    response.end(JSON.stringify(await operate(stack, event)));
  } else if (name === "notes-stuck-belfry-operate") {
    response.writeHead(200, { "x-amz-function-error": "Unhandled" });
    response.end(JSON.stringify({ errorMessage: "Task timed out after 60.00 seconds" }));
  } else if (name === "notes-barred-belfry-operate") refuse(response, 403, "AccessDeniedException");
  else if (name === "notes-stale-belfry-operate") refuse(response, 403, "ExpiredTokenException");
  else if (name !== undefined) refuse(response, 404, "ResourceNotFoundException");
  else {
    const [status, xml] = stackXml(new URLSearchParams(await text(request)).get("StackName") ?? "");
    response.writeHead(status, { "content-type": "text/xml" });
    response.end(xml);
  }
};

let stack: Stack;
let aws: ReturnType<typeof createServer>;
let env: { readonly [name: string]: string | undefined };
let project: string;

const folderWith = (serverless?: string): string => {
  const folder = mkdtempSync(join(tmpdir(), "belfry stage "));
  if (serverless !== undefined) writeFileSync(join(folder, "serverless.yml"), serverless);
  return folder;
};

beforeAll(async () => {
  stack = await startStack();
  const answer = answerAsAws(stack);
  aws = createServer((request, response) => void answer(request, response)).listen(0, "127.0.0.1");
  await once(aws, "listening");
  env = {
    AWS_ENDPOINT_URL: `http://127.0.0.1:${(aws.address() as AddressInfo).port}`,
    AWS_REGION: "eu-central-1",
    AWS_ACCESS_KEY_ID: "test",
    AWS_SECRET_ACCESS_KEY: "test",
    AWS_CONFIG_FILE: "/dev/null",
    AWS_SHARED_CREDENTIALS_FILE: "/dev/null",
    AWS_EC2_METADATA_DISABLED: "true",
  };
  project = folderWith("# ours\nservice: notes # of all\nprovider:\n  name: aws\n");
});

afterAll(async () => {
  aws.closeAllConnections();
  aws.close();
  await stack.close();
});

const onStage = (args: readonly string[], more: { cwd?: string; env?: typeof env } = {}) =>
  cli(args, { cwd: more.cwd ?? project, env: { ...env, ...more.env }, data: stack.data });

test("with --stage the verbs look and act through the stage's operate function", async () => {
  const ran = await onStage(["run", "daily", "--stage", "live", "--wait", "--json"]);
  expect(ran).toMatchObject({ code: 0, stderr: "" });
  const { runId } = ran.json() as { readonly runId: string };
  const shown = await onStage(["show", runId, "--stage", "live", "--json"]);
  expect(shown.json()).toMatchObject({ runId, state: "succeeded", result: { deletedCount: 7 } });
  expect((await onStage(["list", "--stage", "live"])).stdout).toMatch(/^daily +up /m);
  expect(await onStage(["runs", "--job", "daily", "--stage", "live"])).toMatchObject({ code: 0 });
});

test("a refusal of the stage's router is that of the local one", async () => {
  const unknown = await onStage(["show", "nobody", "--stage", "live", "--json"]);
  expect(unknown.code).toBe(2);
  expect(unknown.json()).toMatchObject({ error: { code: "unknown_job", field: "job" } });
  const day = new Date(Date.now() - 2 * 86_400_000).toISOString().slice(0, 10);
  const slot = ["run", "broken", "--slot", `${day}T18:00:00Z`, "--stage", "live", "--json"];
  await onStage(slot);
  expect(await onStage(slot)).toMatchObject({ code: 3 });
});

test("a stage is never replaced by the local stack, nor the other way round", async () => {
  const gone = await onStage(["list", "--stage", "prod", "--json"]);
  expect(gone.code).toBe(4);
  expect(gone.json()).toMatchObject({ error: { code: "no_stage" } });
  const asked = await cli(["list", "--json"], { cwd: project, env });
  expect(asked.json()).toMatchObject({ error: { code: "no_stack" } });
});

test.each([
  [
    "a stage that does not exist",
    "prod",
    {},
    'notes has no stage "prod" in eu-central-1',
    /deploy --stage prod/,
  ],
  [
    "a stack whose first deploy failed",
    "broken",
    {},
    /cannot answer: its stack is in ROLLBACK_COMPLETE/,
    /remove/,
  ],
  ["a stack that is being made", "coming", {}, /its stack is in CREATE_IN_PROGRESS/, /wait/],
  [
    "a stack that is being removed",
    "leaving",
    {},
    /its stack is in DELETE_IN_PROGRESS/,
    /wait until it is removed/,
  ],
  [
    "a stack whose deploy was undone before it had functions",
    "undone",
    {},
    /its stack is in UPDATE_ROLLBACK_COMPLETE/,
    /last deploy failed.*deploy --stage undone/,
  ],
  [
    "a function that fails",
    "stuck",
    {},
    /failed: Task timed out after 60\.00 seconds/,
    /logs -f belfry-operate/,
  ],
  [
    "a permission that lacks",
    "barred",
    {},
    /you may not invoke notes-barred-belfry-operate/,
    /lambda|permission/,
  ],
  ["credentials that are over", "stale", {}, /refuses the credentials \(ExpiredTokenException\)/, /log in/],
  ["no credentials", "live", { AWS_ACCESS_KEY_ID: undefined }, "no AWS credentials are found", /AWS_PROFILE/],
  [
    "no region",
    "live",
    { AWS_REGION: undefined, AWS_DEFAULT_REGION: undefined },
    "no AWS region is set",
    /AWS_REGION/,
  ],
  [
    "an endpoint that does not answer",
    "live",
    { AWS_ENDPOINT_URL: "http://127.0.0.1:1" },
    "http://127.0.0.1:1 does not answer (ECONNREFUSED)",
    /AWS_ENDPOINT_URL/,
  ],
])("%s exits 4 with one clear line and the next thing to do", async (_, stage, changed, words, advice) => {
  const told = await onStage(["list", "--stage", stage], { env: changed });
  expect(told).toMatchObject({ code: 4, stdout: "" });
  const [error, hint, ...rest] = told.stderr.trimEnd().split("\n");
  expect(error).toMatch(/^error: /);
  expect(error).toMatch(words);
  expect(hint).toMatch(advice);
  expect(rest).toEqual([]);
});

test.each([
  ["a name that no stage has", "Prod", "service: notes", {}, /"Prod" is no name of a stage/],
  ["a folder without serverless.yml", "live", undefined, {}, /no serverless\.yml here or above/],
  [
    "a service whose name is computed",
    "live",
    `service: $${"{env:NAME}"}`,
    {},
    /names its service in no way/,
  ],
])("%s exits 2 and says what to do", async (_, stage, serverless, changed, words) => {
  const told = await onStage(["list", "--stage", stage], { cwd: folderWith(serverless), env: changed });
  expect(told).toMatchObject({ code: 2, stdout: "" });
  expect(told.stderr).toMatch(words);
});

test("the service is found from a folder below, and BELFRY_SERVICE names one that no file does", async () => {
  const computed = folderWith(`service: $${"{env:NAME}"}`);
  const told = await onStage(["list", "--stage", "live"], {
    cwd: computed,
    env: { BELFRY_SERVICE: "notes" },
  });
  expect(told).toMatchObject({ code: 0, stderr: "" });
});
