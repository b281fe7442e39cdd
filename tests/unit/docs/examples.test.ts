import { spawn } from "node:child_process";
import { mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const ROOT = fileURLToPath(new URL("../../..", import.meta.url));

/** What the examples use and do not show: the reader's own functions, and the reader's test runner. */
const NOT_SHOWN = `
declare const test: typeof import("vitest").test;
declare const expect: typeof import("vitest").expect;
declare const deleteSessionsBefore: (slot: Date, signal: AbortSignal) => Promise<number>;
declare const sendInvoices: (slot: Date) => Promise<number>;
declare const importOrders: (slot: Date, signal: AbortSignal) => Promise<number>;
declare const writeReports: (bucket: string, days: number) => Promise<void>;
declare const countNotes: () => Promise<number>;
declare const indexNotes: (from: number, count: number) => Promise<number>;
declare const fetchWith: (key: string | undefined) => Promise<void>;
declare const customersAt: (slot: Date) => AsyncIterable<{ id: string; plan: string }>;
declare const sendInvoice: (customer: string, plan: string, key: string) => Promise<void>;
declare const mailer: { send(mail: { date: Date; key: string }): Promise<{ id: string }> };
declare const mails: {
  down: boolean;
  sent: { slot: Date; key: string }[];
  send(slot: Date, key: string): Promise<void>;
};
`;

const pages = async (): Promise<readonly string[]> => [
  "README.md",
  "README.zh-CN.md",
  ...(await readdir(join(ROOT, "docs"))).filter((name) => name.endsWith(".md")).map((name) => `docs/${name}`),
];

interface Example {
  readonly line: number;
  readonly code: string;
}

const examplesIn = (page: string): readonly Example[] =>
  [...page.matchAll(/^```(?:ts|typescript)\n([\s\S]*?)^```$/gm)].map(({ 0: all, 1: code = "", index }) => ({
    line: page.slice(0, index + all.indexOf("\n") + 1).split("\n").length,
    code,
  }));

/** One that imports begins a file; one that does not goes on with the file before it. */
const filesOf = (examples: readonly Example[]): readonly (readonly Example[])[] => {
  const files: Example[][] = [];
  for (const example of examples) {
    const before = files.at(-1);
    if (before === undefined || /^import /m.test(example.code)) files.push([example]);
    else before.push(example);
  }
  return files;
};

/** Each example at its line of the page, so that the compiler names that line. */
const textOf = (examples: readonly Example[]): string =>
  examples.reduce(
    (file, { line, code }) => file + "\n".repeat(line - file.split("\n").length) + code,
    "export {};",
  );

/** A folder with one file for each job, test or configuration that the pages show. */
const writeExamples = async (): Promise<{ readonly folder: string; readonly count: number }> => {
  const folder = await mkdtemp(join(tmpdir(), "belfry-docs-"));
  let count = 0;
  for (const page of await pages()) {
    const examples = examplesIn(await readFile(join(ROOT, page), "utf8"));
    count += examples.length;
    for (const file of filesOf(examples)) {
      await writeFile(join(folder, `${page.replaceAll("/", "-")}-${file[0]?.line}.ts`), textOf(file));
    }
  }
  await writeFile(join(folder, "not-shown.d.ts"), NOT_SHOWN);
  await symlink(join(ROOT, "node_modules"), join(folder, "node_modules"));
  const options = {
    // A house rule of this repository, no part of `strict`.
    noPropertyAccessFromIndexSignature: false,
    paths: {
      belfry: [join(ROOT, "lib/index.ts")],
      "belfry/testing": [join(ROOT, "lib/testing/index.ts")],
    },
  };
  await writeFile(join(folder, "package.json"), '{ "type": "module" }');
  await writeFile(
    join(folder, "tsconfig.json"),
    JSON.stringify({ extends: join(ROOT, "tsconfig.json"), compilerOptions: options, include: ["*.ts"] }),
  );
  return { folder, count };
};

/** What the compiler says of the folder's files; nothing, if all is well. */
const compile = async (folder: string): Promise<string> => {
  const tsc = spawn(process.execPath, [join(ROOT, "node_modules/typescript/bin/tsc"), "-p", folder], {
    cwd: folder,
    stdio: ["ignore", "pipe", "pipe"],
  });
  const [out, problems] = await Promise.all([text(tsc.stdout), text(tsc.stderr)]);
  return out + problems;
};

test("each TypeScript example of README and docs compiles", async () => {
  const { folder, count } = await writeExamples();
  try {
    expect(count).toBeGreaterThan(10);
    expect(await compile(folder)).toBe("");
    // A compiler that looked at none of them would be content, too.
    await writeFile(join(folder, "wrong.ts"), 'import { defineJob } from "belfry";\ndefineJob({});\n');
    expect(await compile(folder)).toMatch(/^wrong\.ts\(2,11\): error .*handler/);
  } finally {
    await rm(folder, { recursive: true });
  }
});

/** The names in the first column of the tables that begin with `| option |`. */
const optionsIn = (page: string): readonly string[] =>
  [...page.matchAll(/^\| option \|.*\n\| ---.*\n((?:\|.*\n)+)/gm)].flatMap(([, rows = ""]) =>
    rows
      .trim()
      .split("\n")
      .flatMap((row) => [...(row.split("|")[1] ?? "").matchAll(/`(\w+)`/g)].map(([, name]) => String(name))),
  );

test("each option in the tables of docs/jobs.md is in an example that compiles", async () => {
  const page = await readFile(join(ROOT, "docs/jobs.md"), "utf8");
  const code = examplesIn(page)
    .map((example) => example.code)
    .join("\n");
  const options = optionsIn(page);
  expect(options).toEqual(expect.arrayContaining(["schedule", "handler", "ladder", "crashes", "pools"]));
  expect(options.filter((name) => !new RegExp(`[\\s{]${name}[:(]`).test(code))).toEqual([]);
});
