import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import * as esbuild from "esbuild";
import { strToU8, type Zippable, zipSync } from "fflate";
import type { Manifest } from "../lib/core/jobs/job.ts";
import { FUNCTIONS, type FunctionKind, functionsOf, hasPings } from "./naming.ts";

/** In the repository the sources, in the package what was built of them. */
const EXTENSION = import.meta.url.endsWith(".ts") ? "ts" : "js";
const ownFile = (path: string): string => fileURLToPath(new URL(`../${path}.${EXTENSION}`, import.meta.url));

/** CommonJS packages in an ESM bundle call `require` for Node's own modules. */
const BANNER = `import { createRequire as __belfryRequire } from "node:module";
const require = __belfryRequire(import.meta.url);`;

/** Files of the worker beside its handler. */
const WORKER_FILES = { thread: "lib/adapters/thread/thread", secrets: "lib/adapters/secrets/aws-secrets" };

/** The clients for secrets stay out of the functions' own bundles, so that who has no secrets pays nothing for them. */
const secretsApart: esbuild.Plugin = {
  name: "belfry-secrets",
  setup: (build) => {
    build.onResolve({ filter: /aws-secrets\.[tj]s$/ }, ({ kind }) =>
      kind === "dynamic-import" ? { path: "./secrets.mjs", external: true } : undefined,
    );
  },
};

/**
 * Lambda puts a function's credentials into its environment, so the clients' search of files, sign-ins, containers
 * and machines finds nothing there. It is a fifth of the code that a start reads.
 */
const environmentCredentials: esbuild.Plugin = {
  name: "belfry-credentials",
  setup: (build) => {
    build.onLoad({ filter: /credential-provider-node[\\/]dist-es[\\/]index\.js$/ }, () => ({
      contents: 'export { fromEnv as defaultProvider } from "@aws-sdk/credential-provider-env";',
    }));
  },
};

/** One ESM file for each entry. Packages' `module` files come first, which halves the import time. */
export const ESM_BUNDLE = {
  outdir: "out",
  outExtension: { ".js": ".mjs" },
  write: false,
  bundle: true,
  platform: "node",
  format: "esm",
  target: "node24",
  mainFields: ["module", "main"],
  // Not the names: they would gain a fifth of the zip and no time at a start, and errors and stacks tell them.
  minifyWhitespace: true,
  minifySyntax: true,
  legalComments: "none",
  banner: { js: BANNER },
  logLevel: "silent",
} as const satisfies esbuild.BuildOptions;

export const FUNCTION_PLUGINS: readonly esbuild.Plugin[] = [secretsApart, environmentCredentials];

/** Our Lambda functions as one ESM file each, with everything they need, by file name. */
export const bundleFunctions = async (): Promise<ReadonlyMap<string, string>> => {
  const result = await esbuild.build({
    ...ESM_BUNDLE,
    entryPoints: [
      ...[...FUNCTIONS, "worker"].map((name) => ({ in: ownFile(`functions/${name}`), out: name })),
      ...Object.entries(WORKER_FILES).map(([out, path]) => ({ in: ownFile(path), out })),
    ],
    plugins: [...FUNCTION_PLUGINS],
  });
  return new Map(result.outputFiles.map(({ path, text }) => [path.split(/[\\/]/).at(-1) ?? path, text]));
};

/** A project's build, as texts of files. */
export interface Built {
  readonly manifest: Manifest;
  readonly manifestText: string;
  readonly jobsText: string;
}

const KNOWS_ADDRESSES: ReadonlySet<FunctionKind> = new Set(["operate", "ping"]);

/** The files in the zip of each kind of function; all pools share the worker's. */
export const artifactFiles = async ({
  manifest,
  manifestText,
  jobsText,
}: Built): Promise<ReadonlyMap<FunctionKind, { readonly [file: string]: string }>> => {
  const bundles = await bundleFunctions();
  const jobsHaveSecrets = manifest.jobs.some(({ secrets }) => secrets !== undefined);
  const pingsHaveSecrets = hasPings(manifest);
  const alertsHaveSecrets = Object.keys(manifest.alerts?.secrets ?? {}).length > 0;
  const pick = (...files: readonly string[]): { readonly [file: string]: string } =>
    Object.fromEntries(files.map((file) => [file, bundles.get(file) ?? ""]));
  // Handlers' maps stay behind: they are as big as the code, and Lambda reads none.
  const jobs = jobsText.replace(/\n\/\/# sourceMappingURL=\S*\s*$/, "\n");
  const worker = {
    ...pick("worker.mjs", "thread.mjs", ...(jobsHaveSecrets ? ["secrets.mjs"] : [])),
    "jobs.mjs": jobs,
    "manifest.json": manifestText,
  };
  return new Map([
    ...functionsOf(manifest).map((kind) => {
      const readsSecrets =
        (kind === "notifier" && alertsHaveSecrets) || (KNOWS_ADDRESSES.has(kind) && pingsHaveSecrets);
      const secrets = readsSecrets ? ["secrets.mjs"] : [];
      return [kind, { ...pick(`${kind}.mjs`, ...secrets), "manifest.json": manifestText }] as const;
    }),
    ["worker", worker] as const,
  ]);
};

export const artifactName = (kind: FunctionKind): string => `belfry-${kind}.zip`;

/** Writes the zips. Equal files give equal zips. */
export const writeArtifacts = async (folder: string, built: Built): Promise<void> => {
  const artifacts = await artifactFiles(built);
  await mkdir(folder, { recursive: true });
  await Promise.all(
    [...artifacts].map(([kind, files]) => writeFile(join(folder, artifactName(kind)), zipOf(files))),
  );
};

/** The first day that a zip can name: the same files are the same bytes, whenever they are packed. */
const EPOCH = "1980-01-01T00:00:00";
/** Read by everybody: Lambda runs the code as another user. */
const READABLE = 0o100644 << 16;

const zipOf = (files: { readonly [file: string]: string }): Uint8Array => {
  const entries = Object.entries(files).map(([file, text]): [string, Zippable[string]] => [
    file,
    [strToU8(text), { mtime: EPOCH, os: 3, attrs: READABLE }],
  ]);
  return zipSync(Object.fromEntries(entries), { level: 9 });
};
