import { createHash } from "node:crypto";
import { mkdir, mkdtemp, readdir, rename, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import type { JobDefinition, Manifest } from "../../lib/core/jobs/job.ts";
import { clashingNeeds } from "../../lib/core/jobs/job-needs.ts";
import { checkConfig, faultsAgainst, type ProjectConfig } from "../../lib/core/jobs/project-config.ts";
import { type Bundle, bundle, type Packages } from "./bundle.ts";
import { type Evaluated, evaluate, type Finding } from "./evaluate.ts";
import type { BuildFault } from "./faults.ts";

export { type BuildFault, formatFaults } from "./faults.ts";

export interface BuildOptions {
  readonly projectDir: string;
  /** Builds lie in `<outDir>/<hash>/`. */
  readonly outDir: string;
  /** Default `external`. */
  readonly packages?: Packages;
  /** Hashes of builds that are in use; beside them and the new one the last few stay. */
  readonly keep?: readonly string[];
  /** How long one file may take to be imported and checked; default 10 s. */
  readonly importMs?: number;
}

export type BuildAnswer =
  | {
      readonly ok: true;
      readonly manifestFile: string;
      readonly jobsFile: string;
      readonly manifest: Manifest;
      /** Of the bundle and the manifest: the same files give the same. */
      readonly hash: string;
      readonly warnings: readonly string[];
    }
  /** Of all files, in the order of their names. */
  | { readonly ok: false; readonly faults: readonly BuildFault[] };

const IMPORT_MS = 10_000;

/** Turns the job files of a project into one bundle and one manifest, or says all that is wrong with them. */
export const buildProject = async (options: BuildOptions): Promise<BuildAnswer> => {
  const projectDir = resolve(options.projectDir);
  const outDir = resolve(options.outDir);
  const sources = await findSources(projectDir);
  const noJobs = faultOfFolder(sources);
  if (noJobs) return { ok: false, faults: [noJobs] };
  const packages = options.packages ?? "external";
  const [jobs, checked] = await Promise.all([
    bundle({
      projectDir,
      outDir: join(outDir, "build"),
      entries: { jobs: { text: indexOf(sources.jobs) } },
      packages,
    }),
    checkSources(projectDir, sources, options.importMs ?? IMPORT_MS),
  ]);
  if (!checked.ok) return checked;
  if (!jobs.ok) return jobs;
  const hash = hashOf([...jobs.files.map(({ text }) => text), checked.manifest.hash]);
  const folder = join(outDir, hash);
  await writeBuild(folder, jobs.files, checked.manifest);
  await cleanUp(outDir, new Set([hash, ...(options.keep ?? [])]));
  return {
    ok: true,
    manifestFile: join(folder, "manifest.json"),
    jobsFile: join(folder, "jobs.mjs"),
    manifest: checked.manifest,
    hash,
    warnings: jobs.warnings,
  };
};

interface Sources {
  /** Relative to the project, sorted; undefined = there is no jobs folder. */
  readonly jobs: readonly string[];
  readonly hasFolder: boolean;
  /** Code in the folder that is no job file by its name, so that nobody waits for a job that is not there. */
  readonly misnamed: readonly string[];
  readonly config: string | undefined;
}

const JOB_FILE = /^(?!.*\.(?:test|d)\.)[^.].*\.(?:ts|js|mjs)$/;
const MISNAMED_FILE = /^(?!.*\.(?:test|d)\.)[^.].*\.(?:tsx|jsx|mts|cts|cjs)$/;

const findSources = async (projectDir: string): Promise<Sources> => {
  const entries = await readdir(join(projectDir, "jobs"), { withFileTypes: true }).catch(() => undefined);
  const filesLike = (pattern: RegExp): readonly string[] =>
    (entries ?? [])
      .filter((entry) => entry.isFile() && pattern.test(entry.name))
      .map(({ name }) => `jobs/${name}`)
      .sort();
  const here = await readdir(projectDir).catch(() => []);
  return {
    jobs: filesLike(JOB_FILE),
    misnamed: filesLike(MISNAMED_FILE),
    hasFolder: entries !== undefined,
    config: here.find((name) => /^belfry\.config\.(?:ts|js|mjs)$/.test(name)),
  };
};

const faultOfFolder = ({ jobs, misnamed, hasFolder }: Sources): BuildFault | undefined => {
  if (jobs.length + misnamed.length > 0) return undefined;
  const message = hasFolder ? "the folder has no job file" : "the project has no such folder";
  return {
    file: "jobs",
    message,
    hint: "write one file per job, jobs/<name>.ts, that default-exports defineJob({ ... })",
  };
};

const faultOfName = (file: string): BuildFault => ({
  file,
  message: "a job file ends in .ts, .js or .mjs",
  hint: "rename it, or move it out of jobs/ if it is no job",
});

const stemOf = (file: string): string => basename(file).replace(/\.[a-z]+$/, "");

/** The bundle's entry: a job's name -> what `defineJob` made. */
const indexOf = (jobs: readonly string[]): string =>
  [
    ...jobs.map((file, i) => `import job${i} from ${JSON.stringify(`./${file}`)};`),
    "export default {",
    ...jobs.map((file, i) => `  [job${i}.options.name ?? ${JSON.stringify(stemOf(file))}]: job${i},`),
    "};",
  ].join("\n");

type CheckedSources =
  | { readonly ok: true; readonly manifest: Manifest }
  | { readonly ok: false; readonly faults: readonly BuildFault[] };

const checkSources = async (
  projectDir: string,
  { jobs, config, misnamed }: Sources,
  importMs: number,
): Promise<CheckedSources> => {
  const files = [...(config === undefined ? [] : [config]), ...jobs];
  const temp = await mkdtemp(join(tmpdir(), "belfry-build-"));
  try {
    const { built, faults } = await bundleEach(projectDir, temp, files);
    const modules = built.map(
      (file): Evaluated => ({
        module: join(temp, `${file}.mjs`),
        kind: file === config ? "config" : "job",
        stem: stemOf(file),
      }),
    );
    const findings = await evaluate(modules, importMs);
    const allFaults = [...misnamed.map(faultOfName), ...faults];
    return judge(files, new Map(built.map((file, i) => [file, findings[i]])), allFaults);
  } finally {
    await rm(temp, { recursive: true, force: true });
  }
};

/** A bundle for each file: together where all can be built, else each by itself, to find out which cannot. */
const bundleEach = async (
  projectDir: string,
  outDir: string,
  files: readonly string[],
): Promise<{ readonly built: readonly string[]; readonly faults: readonly BuildFault[] }> => {
  const bundleOf = (some: readonly string[]): Promise<Bundle> => {
    const entries = Object.fromEntries(some.map((file) => [file, { file: `./${file}` }]));
    return bundle({ projectDir, outDir, entries, packages: "external" });
  };
  const together = await bundleOf(files);
  const bundles = together.ok ? [together] : await Promise.all(files.map((file) => bundleOf([file])));
  await Promise.all(bundles.flatMap((one) => (one.ok ? one.files.map(writeOut) : [])));
  const faults = bundles.flatMap((one) => (one.ok ? [] : one.faults));
  const different = new Map(faults.map((fault) => [`${fault.file} ${fault.message}`, fault]));
  return {
    built: together.ok ? files : files.filter((_, i) => bundles[i]?.ok),
    faults: [...different.values()],
  };
};

const writeOut = async ({ path, text }: { readonly path: string; readonly text: string }): Promise<void> => {
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, text);
};

const judge = (
  files: readonly string[],
  findings: ReadonlyMap<string, Finding | undefined>,
  bundleFaults: readonly BuildFault[],
): CheckedSources => {
  const faults = [...bundleFaults];
  const jobs: { readonly file: string; readonly definition: JobDefinition }[] = [];
  let config: ProjectConfig | undefined;
  for (const file of files) {
    const finding = findings.get(file);
    if (finding?.kind === "faults") faults.push(...finding.faults.map((fault) => ({ file, ...fault })));
    if (finding?.kind === "job") jobs.push({ file, definition: finding.definition });
    if (finding?.kind === "config") config = finding.config;
  }
  const hasConfig = files.some((file) => file.startsWith("belfry.config."));
  const known = config ?? (hasConfig ? undefined : defaultConfig());
  for (const { file, definition } of jobs)
    if (known) faults.push(...faultsAgainst(known, definition).map((fault) => ({ file, ...fault })));
  faults.push(...clashes(jobs));
  const definitions = jobs.map(({ definition }) => definition);
  jobs.forEach(({ file, definition }, i) => {
    faults.push(...clashingNeeds(definition, definitions.slice(0, i)).map((fault) => ({ file, ...fault })));
  });
  if (faults.length > 0 || known === undefined) {
    const order = (file: string) => files.findIndex((name) => file.startsWith(name));
    return { ok: false, faults: faults.sort((a, b) => order(a.file) - order(b.file)) };
  }
  return {
    ok: true,
    manifest: manifestOf(known, definitions),
  };
};

const defaultConfig = (): ProjectConfig | undefined => {
  const checked = checkConfig(undefined);
  return checked.ok ? checked.value : undefined;
};

/** Two jobs of one name, or of one subject: they would share history and claims. */
const clashes = (
  jobs: readonly { readonly file: string; readonly definition: JobDefinition }[],
): readonly BuildFault[] =>
  jobs.flatMap(({ file, definition }, i) => {
    const before = jobs.slice(0, i);
    const twin = before.find((other) => other.definition.name === definition.name);
    if (twin) {
      const message = `the name "${definition.name}" is taken by ${twin.file}`;
      return [{ file, field: "name", message, hint: "give one of the two another name" }];
    }
    const heir = before.find((other) => other.definition.subject === definition.subject);
    if (!heir) return [];
    const message = `${heir.file} goes by "${definition.subject}" too, so the two would share one history`;
    return [{ file, field: "renamedFrom", message, hint: "a former name belongs to one job" }];
  });

const manifestOf = (config: ProjectConfig, definitions: readonly JobDefinition[]): Manifest => {
  const jobs = [...definitions].sort((a, b) => (a.name < b.name ? -1 : 1));
  const { stages, pools, alerts } = config;
  const rest = { version: 1, stages, pools, ...(alerts.channels.length > 0 && { alerts }), jobs } as const;
  return { ...rest, hash: createHash("sha256").update(JSON.stringify(rest)).digest("hex") };
};

const hashOf = (texts: readonly string[]): string => {
  const hash = createHash("sha256");
  for (const text of texts) hash.update(`${text.length}\n`).update(text);
  return hash.digest("hex").slice(0, 16);
};

/** Complete or not at all: whoever sees the folder sees all of it. */
const writeBuild = async (
  folder: string,
  files: readonly { readonly path: string; readonly text: string }[],
  manifest: Manifest,
): Promise<void> => {
  if (await stat(folder).catch(() => undefined)) return;
  await mkdir(dirname(folder), { recursive: true });
  const draft = await mkdtemp(`${folder}-`);
  await Promise.all(files.map(({ path, text }) => writeFile(join(draft, basename(path)), text)));
  await writeFile(join(draft, "manifest.json"), `${JSON.stringify(manifest, null, 2)}\n`);
  await rename(draft, folder).catch(async (error: unknown) => {
    await rm(draft, { recursive: true, force: true });
    // Another build of the same files was first.
    if (!(await stat(folder).catch(() => undefined))) throw error;
  });
};

const LAST_BUILDS = 3;
const BUILD_FOLDER = /^[0-9a-f]{16}$/;

const cleanUp = async (outDir: string, keep: ReadonlySet<string>): Promise<void> => {
  const old = (await readdir(outDir)).filter((name) => BUILD_FOLDER.test(name) && !keep.has(name));
  const dated = await Promise.all(
    old.map(async (name) => ({
      name,
      at: (await stat(join(outDir, name)).catch(() => undefined))?.mtimeMs ?? 0,
    })),
  );
  const past = dated.sort((a, b) => b.at - a.at).slice(LAST_BUILDS);
  await Promise.all(past.map(({ name }) => rm(join(outDir, name), { recursive: true, force: true })));
};
