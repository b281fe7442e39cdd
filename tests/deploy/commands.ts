import { spawn } from "node:child_process";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { environmentFor } from "./aws.ts";
import type { Emulator } from "./emulator.ts";
import { STAGE } from "./project.ts";

export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Nothing of the surroundings that names an AWS, but for what the emulator needs. */
const environment = (emulator: Emulator): Record<string, string> => {
  const kept = Object.entries(process.env).filter(
    (entry): entry is [string, string] =>
      entry[1] !== undefined && !/^(?:AWS_|BELFRY_|npm_|NODE_OPTIONS|NODE_EXTRA)/.test(entry[0]),
  );
  return { ...Object.fromEntries(kept), ...environmentFor(emulator) };
};

/** Variables of a command's environment; undefined = not set. */
type Changed = { readonly [name: string]: string | undefined };

export type Commands = ReturnType<typeof makeCommands>;

/** What people type in the project's folder. */
export const makeCommands = (emulator: Emulator, folder: string, stage: string = STAGE) => {
  const env = environment(emulator);

  const node = async (script: string, args: readonly string[], changed: Changed = {}) => {
    const child = spawn(process.execPath, [script, ...args], {
      cwd: folder,
      env: { ...env, ...changed },
      stdio: ["ignore", "pipe", "pipe"],
    });
    const code = new Promise<number | null>((resolve, reject) => {
      child.on("error", reject);
      child.on("close", resolve);
    });
    const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)]);
    return { code: await code, stdout, stderr } satisfies Ended;
  };

  const belfry = (args: readonly string[], changed?: Changed): Promise<Ended> =>
    node(join(folder, "node_modules", "belfry", "cli", "bin.js"), args, changed);

  const tryServerless = (args: readonly string[], changed?: Changed): Promise<Ended> =>
    node(
      join(folder, "node_modules", "serverless", "bin", "serverless.js"),
      [...args, "--stage", stage],
      changed,
    );

  return {
    belfry,
    /** On the stage, with `--json`: its answer, whatever the exit code. */
    ask: async <Answer>(...args: readonly string[]): Promise<Answer> => {
      const { stdout, stderr } = await belfry([...args, "--stage", stage, "--json"]);
      try {
        return JSON.parse(stdout) as Answer;
      } catch {
        throw new Error(`belfry ${args.join(" ")} answered no JSON: ${stdout}${stderr}`);
      }
    },
    tryServerless,
    /** @throws Error with all that it said, when it fails */
    serverless: async (...args: readonly string[]): Promise<Ended> => {
      const ended = await tryServerless(args);
      if (ended.code === 0) return ended;
      throw new Error(
        `serverless ${args.join(" ")} ended with ${ended.code}:\n${ended.stdout}${ended.stderr}`,
      );
    },
  };
};
