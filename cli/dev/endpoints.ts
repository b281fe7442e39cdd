import { InvalidInput } from "../../lib/core/errors.ts";

type Environment = { readonly [name: string]: string | undefined };

/** Endpoints that the environment names; what is absent runs embedded. */
export interface Attached {
  readonly dynamodb?: string;
  readonly sqs?: string;
}

const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/;

/** Does the address stay on this machine? By name alone: what a resolver says today is no promise. */
export const isLoopback = (url: URL): boolean => LOOPBACK.test(url.hostname);

const readUrl = (variable: string, text: string): URL => {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    throw new InvalidInput("invalid_endpoint", `${variable} is no http address: "${text}"`);
  }
  return url;
};

const checked = (variable: string, text: string, allowRemote: boolean): string => {
  const url = readUrl(variable, text);
  if (!allowRemote && !isLoopback(url)) {
    throw new InvalidInput(
      "remote_endpoint",
      `${variable} names ${url.host}, which is not this machine; with --allow-remote-endpoint it is used all the same`,
    );
  }
  return url.href.replace(/\/$/, "");
};

const fromEnvironment = (
  environment: Environment,
  service: "DYNAMODB" | "SQS",
  allowRemote: boolean,
): string | undefined => {
  for (const variable of [`AWS_ENDPOINT_URL_${service}`, "AWS_ENDPOINT_URL"]) {
    const text = environment[variable];
    if (text !== undefined && text !== "") return checked(variable, text, allowRemote);
  }
  return undefined;
};

/**
 * `AWS_ENDPOINT_URL_DYNAMODB` and `AWS_ENDPOINT_URL_SQS`, each before `AWS_ENDPOINT_URL`; empty counts as unset.
 * @throws InvalidInput (`invalid_endpoint`, or `remote_endpoint` for an address beyond loopback)
 */
export const attachedEndpoints = (environment: Environment, allowRemote: boolean): Attached => {
  const dynamodb = fromEnvironment(environment, "DYNAMODB", allowRemote);
  const sqs = fromEnvironment(environment, "SQS", allowRemote);
  return { ...(dynamodb === undefined ? {} : { dynamodb }), ...(sqs === undefined ? {} : { sqs }) };
};
