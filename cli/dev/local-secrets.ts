import { existsSync, readFileSync } from "node:fs";
import { parseEnv } from "node:util";

/** The text of the project's `.env`; empty where there is none. */
export const readDotenv = (): string => (existsSync(".env") ? readFileSync(".env", "utf8") : "");

/** What a secret is on this machine: the shell's own value, else `.env`'s as it is now; empty counts as none. */
export const localSecret = (variable: string): string | undefined =>
  process.env[variable] || parseEnv(readDotenv())[variable] || undefined;
