import { messageOf } from "../../lib/core/errors.ts";
import { NoStack } from "../stack-file.ts";

/** Of every client of the command line: an answer that does not come is told, not waited for. */
const CONNECT_MS = 5_000;
/** A little over the time-out of the operate function. */
const ANSWER_MS = 65_000;

export const CLIENT_OPTIONS = {
  requestHandler: { connectionTimeout: CONNECT_MS, requestTimeout: ANSWER_MS },
} as const;

/** What we ask of a client before it is used. */
interface Client {
  readonly config: { readonly region: () => Promise<string> };
}

/**
 * Where the calls go.
 * @throws Unavailable (`no_region`) where nothing names one
 */
export const regionOf = async (client: Client): Promise<string> => {
  try {
    return await client.config.region();
  } catch {
    const hint = "set AWS_REGION to the region of the stage, or name it in the profile of AWS_PROFILE";
    throw new NoStack("no_region", "no AWS region is set", hint);
  }
};

const NO_CREDENTIALS: ReadonlySet<string> = new Set(["CredentialsProviderError", "TokenProviderError"]);

const REFUSED_CREDENTIALS: ReadonlySet<string> = new Set([
  "ExpiredToken",
  "ExpiredTokenException",
  "InvalidClientTokenId",
  "InvalidSignatureException",
  "SignatureDoesNotMatch",
  "UnrecognizedClientException",
]);

const LOG_IN = 'log in (for one, "aws sso login"), or set AWS_PROFILE';

export const nameOf = (error: unknown): string => (error instanceof Error ? error.name : "");

/** Of a socket or a certificate: `ECONNREFUSED`, `SELF_SIGNED_CERT_IN_CHAIN`. AWS's own errors have none. */
const networkCode = (error: unknown): string | undefined => {
  if (!(error instanceof Error)) return undefined;
  if ("code" in error && typeof error.code === "string") return error.code;
  if (error.name === "TimeoutError") return "no answer in time";
  return error instanceof AggregateError ? networkCode(error.errors[0]) : undefined;
};

/**
 * What stands between the command line and AWS, as one line with the next thing to do.
 * @param what - "invoke notes-prod-belfry-operate"
 */
export const awsError = (error: unknown, what: string): NoStack => {
  const name = nameOf(error);
  const message = messageOf(error);
  if (error instanceof NoStack) return error;
  if (NO_CREDENTIALS.has(name)) return new NoStack("no_credentials", "no AWS credentials are found", LOG_IN);
  if (REFUSED_CREDENTIALS.has(name))
    return new NoStack("credentials_refused", `AWS refuses the credentials (${name})`, LOG_IN);
  if (/^AccessDenied/.test(name))
    return new NoStack("not_allowed", `you may not ${what}`, "ask whoever deploys for the permission");
  const code = networkCode(error);
  const endpoint = process.env["AWS_ENDPOINT_URL"];
  if (code !== undefined)
    return new NoStack(
      "no_answer",
      `${endpoint === undefined ? "AWS" : endpoint} does not answer (${code})`,
      endpoint === undefined ? "look at the network" : "AWS_ENDPOINT_URL names it",
    );
  return new NoStack("aws_failed", `AWS did not ${what}: ${name}: ${message}`);
};
