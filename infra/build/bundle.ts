import { isAbsolute, join, relative, sep } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import * as esbuild from "esbuild";
import type { BuildFault } from "./faults.ts";

/** This library's own entry: a project has one copy of `belfry` in its bundle, whatever lies in its node_modules. */
const LIBRARY = fileURLToPath(
  new URL(import.meta.url.endsWith(".ts") ? "../../lib/index.ts" : "../../lib/index.js", import.meta.url),
);

/** CommonJS packages in an ESM bundle call `require` for Node's own modules. */
const BANNER = `import { createRequire as __belfryRequire } from "node:module";
const require = __belfryRequire(import.meta.url);`;

/** `external` = packages are loaded from where they are installed; `bundle` = the result needs no node_modules. */
export type Packages = "external" | "bundle";

export interface BundleOptions {
  readonly projectDir: string;
  /** Where the files would lie; nothing is written. */
  readonly outDir: string;
  /** Output name without extension -> a file, or the text of a module that lies in the project's folder. */
  readonly entries: { readonly [output: string]: { readonly file: string } | { readonly text: string } };
  readonly packages: Packages;
}

export type Bundle =
  | {
      readonly ok: true;
      readonly files: readonly { readonly path: string; readonly text: string }[];
      readonly warnings: readonly string[];
    }
  | { readonly ok: false; readonly faults: readonly BuildFault[] };

/** The files of an ESM bundle for Lambda's Node, with maps beside them. */
export const bundle = async (options: BundleOptions): Promise<Bundle> => {
  const { projectDir, outDir, entries, packages } = options;
  const texts = Object.entries(entries).flatMap(([output, entry]) =>
    "text" in entry ? [[output, entry.text]] : [],
  );
  try {
    const result = await esbuild.build({
      absWorkingDir: projectDir,
      entryPoints: Object.entries(entries).map(([out, entry]) => ({
        in: "file" in entry ? entry.file : `${GENERATED}${out}`,
        out,
      })),
      outdir: outDir,
      outExtension: { ".js": ".mjs" },
      write: false,
      bundle: true,
      platform: "node",
      format: "esm",
      target: "node22",
      ...(packages === "bundle"
        ? { mainFields: ["module", "main"] }
        : // What Node itself would load.
          { mainFields: ["main"], conditions: [] }),
      banner: { js: BANNER },
      sourcemap: "linked",
      sourcesContent: false,
      logLevel: "silent",
      plugins: [
        library,
        generated(projectDir, Object.fromEntries(texts)),
        ...(packages === "external" ? [installedPackages] : []),
      ],
    });
    return {
      ok: true,
      files: result.outputFiles.map(({ path, text }) => ({ path, text })),
      warnings: result.warnings.map((warning) => `${placeOf(projectDir, warning)}: ${warning.text}`),
    };
  } catch (error) {
    if (!isBuildFailure(error)) throw error;
    return { ok: false, faults: error.errors.map((message) => faultOf(projectDir, message)) };
  }
};

const library: esbuild.Plugin = {
  name: "belfry",
  setup: (build) => {
    build.onResolve({ filter: /^belfry$/ }, () => ({ path: LIBRARY }));
  },
};

const GENERATED = "belfry-generated:";

const generated = (projectDir: string, texts: { readonly [output: string]: string }): esbuild.Plugin => ({
  name: "belfry-generated",
  setup: (build) => {
    build.onResolve({ filter: /^belfry-generated:/ }, ({ path }) => ({ path, namespace: "belfry" }));
    build.onLoad({ filter: /.*/, namespace: "belfry" }, ({ path }) => ({
      contents: texts[path.slice(GENERATED.length)] ?? "",
      resolveDir: projectDir,
    }));
  },
});

/**
 * Leaves installed packages out and names them by their address, so that the bundle may lie anywhere. A package
 * that is not installed is a fault with its file and line; one that is linked from beside the project is bundled.
 */
const installedPackages: esbuild.Plugin = {
  name: "belfry-installed-packages",
  setup: (build) => {
    build.onResolve({ filter: /^[^./]/ }, async ({ path, pluginData, kind, ...from }) => {
      if (pluginData === installedPackages || kind === "entry-point" || isAbsolute(path)) return undefined;
      const { importer, namespace, resolveDir } = from;
      const found = await build.resolve(path, {
        kind,
        importer,
        namespace,
        resolveDir,
        pluginData: installedPackages,
      });
      const installed =
        found.errors.length === 0 && !found.external && found.path.includes(`${sep}node_modules${sep}`);
      if (!installed) return found;
      return { path: kind === "require-call" ? found.path : pathToFileURL(found.path).href, external: true };
    });
  },
};

const isBuildFailure = (error: unknown): error is esbuild.BuildFailure =>
  error instanceof Error && "errors" in error && Array.isArray(error.errors);

const placeOf = (projectDir: string, { location }: esbuild.Message): string =>
  location === null
    ? "belfry"
    : `${relative(projectDir, join(projectDir, location.file))}:${location.line}:${location.column + 1}`;

const faultOf = (projectDir: string, message: esbuild.Message): BuildFault => {
  const unresolved = /^Could not resolve "([^".][^"]*)"/.exec(message.text)?.[1];
  const hint =
    unresolved === undefined ? message.notes[0]?.text : `is it installed? npm install ${unresolved}`;
  return { file: placeOf(projectDir, message), message: message.text, ...(hint && { hint }) };
};
