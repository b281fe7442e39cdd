import { mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

const optionsText = (texts: string | { readonly [option: string]: string }): string =>
  Object.entries(typeof texts === "string" ? { handler: texts } : texts)
    .map(([option, text]) => `${option}: ${text}`)
    .join(", ");

/**
 * A bundle of handlers as a build would make it: the default export maps names to what `defineJob` made. Given is the text
 * of each handler or, for a job with more functions than that, of each of them by its option.
 */
export const jobsFile = async (handlers: {
  readonly [job: string]: string | { readonly [option: string]: string };
}): Promise<string> => {
  const folder = await mkdtemp(join(tmpdir(), "belfry-jobs-"));
  const library = new URL("../../lib/index.ts", import.meta.url);
  const jobs = Object.entries(handlers).map(
    ([name, texts]) => `${JSON.stringify(name)}: defineJob({ ${optionsText(texts)} })`,
  );
  const file = join(folder, "jobs.mjs");
  await writeFile(file, `import { defineJob } from "${library}";\nexport default { ${jobs.join(", ")} };\n`);
  return file;
};
