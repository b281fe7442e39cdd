import { expect, test } from "vitest";
import { artifactFiles } from "../../../infra/artifacts.ts";
import { alarmsOf } from "../../../lib/core/alarms/alarms.ts";
import { daily, elsewhere, manifestOf, ofType, property, stackOf, statementsOf } from "./setup.ts";

const STACK = stackOf([daily, elsewhere]);
const SECRET = { Ref: "BelfryPingSecret" };

test("a project without a monitor has nothing that anybody could call from outside", () => {
  const { functions, outputs, resources } = stackOf([daily]);
  expect(functions.map(({ kind }) => kind)).not.toContain("ping");
  expect(Object.keys(resources).filter((id) => id.startsWith("BelfryPing"))).toEqual([]);
  expect(Object.values(resources).map(({ Type }) => Type)).not.toContain("AWS::ApiGatewayV2::Api");
  expect(JSON.stringify({ functions, outputs, resources })).not.toContain("BELFRY_PING");
});

test("a monitor brings one address for pings, limited in number, and its function, which that address may invoke and nobody else", () => {
  const { resources } = STACK;
  expect(property(resources["BelfryPingApiRoute"], "RouteKey")).toBe("ANY /ping/{proxy+}");
  expect(ofType(STACK, "AWS::ApiGatewayV2::Route")).toHaveLength(1);
  const limits = property(resources["BelfryPingApiStage"], "DefaultRouteSettings");
  expect(limits).toEqual({ ThrottlingRateLimit: 50, ThrottlingBurstLimit: 100 });
  expect(resources["BelfryPingApiPermission"]?.Properties).toMatchObject({
    FunctionName: { "Fn::GetAtt": ["BelfryDashpingLambdaFunction", "Arn"] },
    Principal: "apigateway.amazonaws.com",
    SourceArn: { "Fn::Sub": expect.stringMatching(/:execute-api:.*:\$\{BelfryPingApi\}\/\*$/) },
  });
  expect(resources["BelfryPingApiIntegration"]?.Properties).toMatchObject({ PayloadFormatVersion: "2.0" });
  expect(Object.keys(STACK.outputs)).toContain("BelfryPingUrl");
});

test("the secret of the addresses is made by the stack, of over 32 characters, and is in no template", () => {
  const secret = STACK.resources["BelfryPingSecret"];
  expect(property(secret, "GenerateSecretString")).toEqual({ PasswordLength: 64, ExcludePunctuation: true });
  expect(secret?.Properties).not.toHaveProperty("SecretString");
});

test("two functions know the secret's name and may read it: the one that takes pings, and the one that tells an address", () => {
  const knowing = STACK.functions.filter(({ properties }) =>
    JSON.stringify(properties).includes("BELFRY_PING_SECRET"),
  );
  expect(knowing.map(({ kind }) => kind)).toEqual(["operate", "ping"]);
  const reading = STACK.functions.filter(({ roleId }) =>
    statementsOf(STACK.resources[roleId]).some(({ Action }) => Action.join().includes("secretsmanager")),
  );
  expect(reading.map(({ kind }) => kind)).toEqual(["operate", "ping"]);
  expect(statementsOf(STACK.resources["BelfryPingRole"]).slice(1)).toEqual([
    {
      Effect: "Allow",
      Action: ["dynamodb:GetItem", "dynamodb:Query", "dynamodb:UpdateItem"],
      Resource: [{ "Fn::GetAtt": ["BelfryTable", "Arn"] }],
    },
    { Effect: "Allow", Action: ["secretsmanager:GetSecretValue"], Resource: [SECRET] },
  ]);
});

test("a function that cannot take pings rings an alarm of its own", () => {
  const keys = (jobs: Parameters<typeof stackOf>[0]) => alarmsOf(manifestOf(jobs)).map(({ key }) => key);
  const others = keys([daily]);
  expect(keys([daily, elsewhere]).filter((key) => !others.includes(key))).toEqual(["ping-errors"]);
  const names = property(STACK.resources["BelfryAlarmPingDasherrors"], "Metrics");
  expect(JSON.stringify(names)).toContain("notes-prod-belfry-ping");
});

test("the zips of a project with a monitor hold the client that reads its secret, and others do not", async () => {
  const zips = (jobs: Parameters<typeof stackOf>[0]) =>
    artifactFiles({ manifest: manifestOf(jobs), manifestText: "{}", jobsText: "" });
  const holding = async (jobs: Parameters<typeof stackOf>[0]) =>
    [...(await zips(jobs))].flatMap(([kind, files]) => ("secrets.mjs" in files ? [kind] : []));
  expect(await holding([daily, elsewhere])).toEqual(["operate", "ping"]);
  expect(await holding([daily])).toEqual([]);
  expect([...(await zips([daily])).keys()]).not.toContain("ping");
});
