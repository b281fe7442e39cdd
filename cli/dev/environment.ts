import { devNull } from "node:os";
import { REGION, STAGE, TABLE_NAME } from "./resources.ts";

type Environment = { readonly [name: string]: string | undefined };

export interface Endpoints {
  readonly dynamodb: string;
  readonly sqs: string;
}

/** The emulators accept any; a deployed stack accepts none of these. */
export const CREDENTIALS = { accessKeyId: "test", secretAccessKey: "test" } as const;

/**
 * The environment of our children, and so of users' handlers: nothing of the caller's AWS set-up (keys, profile,
 * region, roles, shared files), so that no client, ours or a handler's, can reach a deployed queue or table by
 * accident. An `AWS_ENDPOINT_URL` is kept: it is where the caller wants other services to be.
 */
export const childEnvironment = (
  environment: Environment,
  endpoints: Endpoints,
  isTableEmbedded: boolean,
): Environment => {
  const kept = Object.entries(environment).filter(
    ([name]) =>
      !/^AWS_/i.test(name) && !/^(BELFRY_STAGE|BELFRY_TABLE|BELFRY_EMBEDDED|NODE_CHANNEL_.*)$/.test(name),
  );
  const other = environment["AWS_ENDPOINT_URL"];
  return {
    ...Object.fromEntries(kept),
    ...(other === undefined || other === "" ? {} : { AWS_ENDPOINT_URL: other }),
    AWS_ENDPOINT_URL_DYNAMODB: endpoints.dynamodb,
    AWS_ENDPOINT_URL_SQS: endpoints.sqs,
    AWS_REGION: REGION,
    AWS_ACCESS_KEY_ID: CREDENTIALS.accessKeyId,
    AWS_SECRET_ACCESS_KEY: CREDENTIALS.secretAccessKey,
    // Without these a client would still read the default profile, or ask the machine's role.
    AWS_CONFIG_FILE: devNull,
    AWS_SHARED_CREDENTIALS_FILE: devNull,
    AWS_EC2_METADATA_DISABLED: "true",
    BELFRY_STAGE: STAGE,
    BELFRY_TABLE: TABLE_NAME,
    // Demo data is written to a table of our own only, never to one that somebody has named.
    ...(isTableEmbedded ? { BELFRY_EMBEDDED: "1" } : {}),
  };
};

/**
 * Makes it this process's own, too: building a project imports its job files, in a child that inherits what we
 * have, and what they do at import must reach a deployed account as little as what their handlers do.
 */
export const adoptEnvironment = (environment: Environment): void => {
  for (const name of Object.keys(process.env)) {
    if (environment[name] === undefined) delete process.env[name];
  }
  Object.assign(process.env, environment);
};
