import { existsSync, readFileSync } from "node:fs";

/** The version of this package, from the package.json above its sources or its built files. */
export const packageVersion = (): string => {
  for (let folder = new URL("./", import.meta.url); ; folder = new URL("../", folder)) {
    const file = new URL("package.json", folder);
    if (existsSync(file)) {
      const { version }: { version?: unknown } = JSON.parse(readFileSync(file, "utf8"));
      return String(version);
    }
    if (folder.pathname === "/") return "unknown";
  }
};
