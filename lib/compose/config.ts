import { InvalidInput } from "../core/errors.ts";
import { AWS_TIMINGS, type Timings } from "../core/settings.ts";

/** Facts of a deployment. Policies live in the job definitions, never here. */
export interface StackConfig extends Timings {
  /** Of serverless.yml: with the stage, whose metrics these are. */
  readonly service: string;
  readonly stage: string;
  readonly region: string;
  readonly tableName: string;
  /** By pool. */
  readonly queueUrls: { readonly [pool: string]: string };
  readonly deadLetterUrls: { readonly [pool: string]: string };
  /** Events that no dispatcher could take. */
  readonly dispatchFailuresUrl: string;
  /** SNS topics of the e-mail channels, by channel; only the notifier has them. */
  readonly emailTopics?: { readonly [channel: string]: string };
  /** Of a deployment with monitors, and only of the functions that know their addresses. */
  readonly pings?: {
    /** In Secrets Manager: what the keys of the addresses are made of. */
    readonly secretArn: string;
    /** What the addresses begin with. The function behind it does not need it. */
    readonly url?: string;
  };
  /** Where the services are when they are not AWS's own. */
  readonly endpoints?: { readonly dynamodb?: string; readonly sqs?: string };
}

const VARIABLES = [
  "BELFRY_SERVICE",
  "BELFRY_STAGE",
  "BELFRY_TABLE",
  "BELFRY_QUEUES",
  "BELFRY_DEAD_LETTERS",
  "BELFRY_DISPATCH_FAILURES",
  "BELFRY_EMAIL_TOPICS",
  "BELFRY_PING_SECRET",
  "BELFRY_PING_URL",
  "BELFRY_LEASE_MS",
  "BELFRY_CLOCK_BOUND_MS",
  "BELFRY_FIRST_LOOK_MS",
] as const;

/** Read by others than this function, and so no typing errors. */
const OTHERS = ["BELFRY_POOL", "BELFRY_MANIFEST", "BELFRY_JOBS", "BELFRY_DATA", "BELFRY_EMBEDDED"];

type Environment = { readonly [name: string]: string | undefined };

/**
 * The environment as one checked value.
 * @throws InvalidInput (`invalid_config`) that lists every fault at once.
 */
export const loadConfig = (env: Environment): StackConfig => {
  const faults: string[] = [];
  const text = (name: (typeof VARIABLES)[number]): string => {
    const value = env[name];
    if (value === undefined || value === "") faults.push(`${name} is not set`);
    return value ?? "";
  };
  const named = (name: (typeof VARIABLES)[number], json: string, what: string): Record<string, string> => {
    const read = readNamed(json);
    if (read === undefined) faults.push(`${name} must be a JSON object of ${what}`);
    return read ?? {};
  };
  const urls = (name: (typeof VARIABLES)[number]) => named(name, text(name), "pool names and queue URLs");
  const milliseconds = (name: (typeof VARIABLES)[number], standard: number): number => {
    const value = Number(env[name] ?? standard);
    if (!Number.isInteger(value) || value <= 0) faults.push(`${name} must be a whole number of milliseconds`);
    return value;
  };
  const config: StackConfig = {
    service: text("BELFRY_SERVICE"),
    stage: text("BELFRY_STAGE"),
    region: env["AWS_REGION"] ?? "us-east-1",
    tableName: text("BELFRY_TABLE"),
    queueUrls: urls("BELFRY_QUEUES"),
    deadLetterUrls: urls("BELFRY_DEAD_LETTERS"),
    dispatchFailuresUrl: text("BELFRY_DISPATCH_FAILURES"),
    emailTopics: named("BELFRY_EMAIL_TOPICS", env["BELFRY_EMAIL_TOPICS"] ?? "{}", "channels and topic ARNs"),
    ...pingsOf(env),
    ...AWS_TIMINGS,
    leaseMs: milliseconds("BELFRY_LEASE_MS", AWS_TIMINGS.leaseMs),
    clockBoundMs: milliseconds("BELFRY_CLOCK_BOUND_MS", AWS_TIMINGS.clockBoundMs),
    firstLookMs: milliseconds("BELFRY_FIRST_LOOK_MS", AWS_TIMINGS.firstLookMs),
  };
  const known: readonly string[] = [...VARIABLES, ...OTHERS];
  for (const name of Object.keys(env)) {
    if (name.startsWith("BELFRY_") && !known.includes(name)) faults.push(`${name} is no variable of Belfry`);
  }
  if (faults.length > 0) throw new InvalidInput("invalid_config", `the environment: ${faults.join("; ")}`);
  return config;
};

const pingsOf = ({
  BELFRY_PING_SECRET: secretArn,
  BELFRY_PING_URL: url,
}: Environment): Pick<StackConfig, "pings"> =>
  secretArn === undefined ? {} : { pings: { secretArn, ...(url === undefined ? {} : { url }) } };

const readNamed = (json: string): Record<string, string> | undefined => {
  try {
    const value: unknown = JSON.parse(json);
    if (typeof value !== "object" || value === null) return undefined;
    const entries = Object.entries(value).filter(
      (entry): entry is [string, string] => typeof entry[1] === "string",
    );
    return entries.length === Object.keys(value).length ? Object.fromEntries(entries) : undefined;
  } catch {
    return undefined;
  }
};
