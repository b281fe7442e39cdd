import { GetSecretValueCommand, SecretsManagerClient } from "@aws-sdk/client-secrets-manager";
import { GetParametersCommand, SSMClient } from "@aws-sdk/client-ssm";
import { InvalidInput } from "../../core/errors.ts";
import { type SecretSource, secretSource } from "../../core/jobs/job-needs.ts";

/** GetParameters takes ten names a call. */
const NAMES_PER_CALL = 10;

/**
 * The values of secrets, by variable. Asked once per process, so a changed secret is seen by workers that start
 * after the change. An error names the secret, never a value.
 * @throws InvalidInput (`no_secret`) for one that is not there, or has not the shape that its reference says
 */
export const readSecrets = async (
  references: { readonly [variable: string]: string },
  { stage, region }: { readonly stage: string; readonly region: string },
): Promise<{ readonly [variable: string]: string }> => {
  const wanted = Object.entries(references).map(
    ([variable, reference]) => [variable, secretSource(reference, stage)] as const,
  );
  const namesOf = (service: SecretSource["service"]) => [
    ...new Set(wanted.flatMap(([, source]) => (source.service === service ? [source.name] : []))),
  ];
  const [parameters, secrets] = await Promise.all([
    readParameters(namesOf("ssm"), region),
    readManaged(namesOf("secretsmanager"), region),
  ]);
  const values = wanted.map(([variable, source]) => {
    const found = (source.service === "ssm" ? parameters : secrets).get(source.name);
    return [variable, valueIn(found, source)];
  });
  return Object.fromEntries(values);
};

/**
 * The value of a secret of Secrets Manager and, where it has been changed, the one before; newest first.
 * @throws InvalidInput (`no_secret`) for one that cannot be read
 */
export const readVersions = async (SecretId: string, region: string): Promise<readonly string[]> => {
  const client = new SecretsManagerClient({ region });
  const read = async (VersionStage: "AWSCURRENT" | "AWSPREVIOUS"): Promise<readonly string[]> => {
    try {
      const { SecretString } = await client.send(new GetSecretValueCommand({ SecretId, VersionStage }));
      return SecretString === undefined ? [] : [SecretString];
    } catch (error) {
      const why = error instanceof Error ? error.name : "unknown";
      if (VersionStage === "AWSPREVIOUS" && why === "ResourceNotFoundException") return [];
      throw missing({ service: "secretsmanager", name: SecretId }, `cannot be read: ${why}`);
    }
  };
  return (await Promise.all([read("AWSCURRENT"), read("AWSPREVIOUS")])).flat();
};

const missing = ({ service, name }: Pick<SecretSource, "service" | "name">, why: string): InvalidInput =>
  new InvalidInput("no_secret", `the secret ${service}:${name} ${why}`, { field: "secrets" });

const readParameters = async (
  names: readonly string[],
  region: string,
): Promise<ReadonlyMap<string, string>> => {
  if (names.length === 0) return new Map();
  const client = new SSMClient({ region });
  const calls = Array.from({ length: Math.ceil(names.length / NAMES_PER_CALL) }, (_, n) =>
    client.send(
      new GetParametersCommand({
        Names: names.slice(n * NAMES_PER_CALL, (n + 1) * NAMES_PER_CALL),
        WithDecryption: true,
      }),
    ),
  );
  const answers = await Promise.all(calls);
  return new Map(
    answers.flatMap(({ Parameters = [] }) => Parameters.map(({ Name = "", Value = "" }) => [Name, Value])),
  );
};

const readManaged = async (
  names: readonly string[],
  region: string,
): Promise<ReadonlyMap<string, string>> => {
  if (names.length === 0) return new Map();
  const client = new SecretsManagerClient({ region });
  const read = async (SecretId: string): Promise<[string, string]> => {
    try {
      const { SecretString } = await client.send(new GetSecretValueCommand({ SecretId }));
      return [SecretId, SecretString ?? ""];
    } catch (error) {
      const why = error instanceof Error ? error.name : "unknown";
      throw missing({ service: "secretsmanager", name: SecretId }, `cannot be read: ${why}`);
    }
  };
  return new Map(await Promise.all(names.map(read)));
};

const valueIn = (found: string | undefined, source: SecretSource): string => {
  if (found === undefined || found === "") throw missing(source, "does not exist or is empty");
  if (source.key === undefined) return found;
  const value = jsonField(found, source.key);
  if (typeof value !== "string") throw missing(source, `has no text under "${source.key}"`);
  return value;
};

const jsonField = (text: string, key: string): unknown => {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? Reflect.get(value, key) : undefined;
  } catch {
    // The parser's message would quote the secret.
    return undefined;
  }
};
