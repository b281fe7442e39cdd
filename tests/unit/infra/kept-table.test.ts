import { expect, test } from "vitest";
import { formatFaults } from "../../../infra/build/faults.ts";
import { keptTableIn, settingFaults } from "../../../infra/checks.ts";
import { makeStack } from "../../../infra/stack.ts";
import { DEPLOYMENT, daily, manifestOf, NOW_MS, stackOf } from "./setup.ts";

const KEPT = "notes-prod-BelfryTable-1ABCDEF";

const keptStack = makeStack({
  deployment: DEPLOYMENT,
  manifest: manifestOf([daily]),
  nowMs: NOW_MS,
  keptTable: KEPT,
});

test("a stack on a table that is left has none of its own, and names that one everywhere", () => {
  const text = JSON.stringify(keptStack);
  expect(text).not.toContain("BelfryTable.Arn");
  expect(text).not.toMatch(/"BelfryTable"/);
  expect(keptStack.outputs["BelfryTableName"]?.Value).toBe(KEPT);
  const named = text.split(KEPT).length - 1;
  const referred = JSON.stringify(stackOf([daily])).match(
    /"Ref":"BelfryTable"|BelfryTable\.Arn|"BelfryTable","Arn"/g,
  );
  expect(named).toBe(referred?.length);
});

test("all the rest of the stack is as it is on a table of its own", () => {
  const own = Object.keys(stackOf([daily]).resources).filter((id) => id !== "BelfryTable");
  expect(Object.keys(keptStack.resources)).toEqual(own);
});

test("a table that was restored may have any name", () => {
  const settings = { table: "restored.on_friday" };
  expect(settingFaults(DEPLOYMENT, settings)).toEqual([]);
  expect(keptTableIn(settings)).toEqual({ keptTable: "restored.on_friday" });
  expect(keptTableIn(undefined)).toEqual({});
});

test.each([
  [
    "the table of another stage",
    { table: "notes-dev-BelfryTable-1ABCDEF" },
    "serverless.yml: custom.belfry.table: notes-dev-BelfryTable-1ABCDEF is the table of notes-dev, and this is notes-prod (name one of notes-prod, so that no two stages share runs, claims and pauses)",
  ],
  [
    "an ARN",
    { table: "arn:aws:dynamodb:us-east-1:000000000000:table/notes" },
    "serverless.yml: custom.belfry.table: this is no name of a table (as DynamoDB lists it, not its ARN)",
  ],
  [
    "a setting that is none",
    { tabel: KEPT },
    "serverless.yml: custom.belfry.tabel: there is no such setting (there is one: table)",
  ],
  [
    "settings that are none",
    "table",
    "serverless.yml: custom.belfry: these are no settings (write { table: <name> }, or leave it out)",
  ],
])("%s is refused in one line", (_, settings, line) => {
  expect(formatFaults(settingFaults(DEPLOYMENT, settings))).toBe(line);
});
