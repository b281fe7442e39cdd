import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const run = promisify(execFile);

/** Kept between runs: a pinned version does not change. */
const CACHE = fileURLToPath(new URL("../../node_modules/.cache/belfry-python", import.meta.url));

/** Each in an environment of its own: they pin versions of botocore that do not go together. */
const TOOLS = {
  ministack: ["ministack==1.5.33"],
  lint: ["cfn-lint==1.58.0", "checkov==3.3.30"],
} as const;

/**
 * The folder of a tool's commands, made where it is not there yet.
 * @throws Error where there is no Python 3 that can make environments
 */
export const pythonTool = async (tool: keyof typeof TOOLS): Promise<string> => {
  const packages = TOOLS[tool];
  const hash = createHash("sha256").update(packages.join(" ")).digest("hex").slice(0, 8);
  const folder = join(CACHE, `${tool}-${hash}`);
  const complete = join(folder, "complete");
  if (existsSync(complete)) return join(folder, "bin");
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(CACHE, { recursive: true });
  await run("python3", ["-m", "venv", folder]).catch((error: unknown) => {
    throw new Error(`this needs Python 3 with venv (Debian: python3-venv): ${String(error)}`);
  });
  await run(join(folder, "bin", "pip"), ["install", "--quiet", ...packages], { maxBuffer: 16 * 1_024 ** 2 });
  writeFileSync(complete, `${packages.join("\n")}\n`);
  return join(folder, "bin");
};
