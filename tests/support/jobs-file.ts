import { mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

/**
 * A bundle of handlers as a build would make it: the default export maps names to what `defineJob` made. `handlers`
 * is the text of an object literal of functions.
 */
export const jobsFile = async (handlers: { readonly [job: string]: string }): Promise<string> => {
  const folder = await mkdtemp(join(tmpdir(), "belfry-jobs-"));
  const library = new URL("../../lib/index.ts", import.meta.url);
  const jobs = Object.entries(handlers).map(
    ([name, handler]) => `${JSON.stringify(name)}: defineJob({ handler: ${handler} })`,
  );
  const file = join(folder, "jobs.mjs");
  await writeFile(file, `import { defineJob } from "${library}";\nexport default { ${jobs.join(", ")} };\n`);
  return file;
};
