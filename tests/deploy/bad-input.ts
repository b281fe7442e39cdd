import { appendFileSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Ended } from "./commands.ts";
import { check } from "./report.ts";
import { outputOf, type Stage } from "./stage.ts";

const NO_CREDENTIALS = {
  AWS_ACCESS_KEY_ID: undefined,
  AWS_SECRET_ACCESS_KEY: undefined,
  AWS_EC2_METADATA_DISABLED: "true",
} as const;
/** The port of nobody. */
const NO_ANSWER = { AWS_ENDPOINT_URL: "https://127.0.0.1:9" } as const;

/** What a person reads: one line that tells the reason, and no stack trace. */
const tells = (what: string, { code, stdout, stderr }: Ended, exit: number, reason: RegExp): string => {
  const lines = `${stdout}${stderr}`.split("\n").filter((line) => reason.test(line));
  check(code === exit && lines.length === 1, `${what} is told in one line, with exit ${exit}`, {
    code,
    stdout,
    stderr,
  });
  check(!/\n\s+at /.test(`${stdout}${stderr}`), `${what} is told without a stack trace`, stderr);
  return `"${lines[0]?.trim()}"`;
};

/** What the command line and the deploy of a stage say where they cannot reach it, or must not have what they are given. */
export const refusedInALine = async (
  stage: Stage & { readonly folder: string },
  first: Stage,
): Promise<string> => {
  const { belfry, tryServerless } = stage.commands;
  const list = ["list", "--stage", stage.name];
  const told = [
    tells("no region", await belfry(list, { AWS_REGION: undefined }), 4, /no AWS region is set/),
    tells("no credentials", await belfry(list, NO_CREDENTIALS), 4, /no AWS credentials are found/),
    tells("no answer", await belfry(list, NO_ANSWER), 4, /127\.0\.0\.1:9 does not answer/),
    tells(
      "a deploy without credentials",
      await tryServerless(["deploy"], NO_CREDENTIALS),
      1,
      /credentials not found/,
    ),
    tells(
      "a deploy without an answer",
      await tryServerless(["deploy"], NO_ANSWER),
      1,
      /ECONNREFUSED 127\.0\.0\.1:9/,
    ),
  ];
  const file = join(stage.folder, "serverless.yml");
  const before = readFileSync(file, "utf8");
  appendFileSync(file, `custom: { belfry: { table: ${await outputOf(first, "BelfryTableName")} } }\n`);
  const other = await tryServerless(["deploy"]);
  writeFileSync(file, before);
  told.push(
    tells("the table of another stage", other, 1, /is the table of check-live, and this is check-other/),
  );
  return told.join(", ");
};
