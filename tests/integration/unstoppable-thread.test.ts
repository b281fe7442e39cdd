import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { jobsFile } from "../support/jobs-file.ts";

const SCRIPT = fileURLToPath(new URL("../support/unstoppable-process.ts", import.meta.url));

test("where a thread cannot be ended by force, the process that owns it is told, and can end itself", async () => {
  // At its memory limit this loop has no point left at which V8 could stop it.
  const file = await jobsFile({
    endless: "async () => { const all = []; while (true) all.push(new Array(1000).fill({})); }",
  });
  const child = spawn(process.execPath, ["--disable-warning=ExperimentalWarning", SCRIPT, file], {
    stdio: ["ignore", "inherit", "inherit"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  const [, signal] = await once(child, "exit");
  expect(signal).toBe("SIGKILL");
});
