import { GetSecretValueCommand, SecretsManagerClient } from "@aws-sdk/client-secrets-manager";
import { GetParametersCommand, SSMClient } from "@aws-sdk/client-ssm";
import { mockClient } from "aws-sdk-client-mock";
import { expect, onTestFinished, test } from "vitest";
import { readSecrets } from "../../../lib/adapters/secrets/aws-secrets.ts";
import { fillSecrets } from "../../../lib/compose/secrets.ts";
import { definition } from "../../support/definitions.ts";

const HERE = { stage: "prod", region: "eu-central-1" };

/** Stores that hold these values. */
const setup = (parameters: Record<string, string>, secrets: Record<string, string> = {}) => {
  const ssm = mockClient(SSMClient);
  const manager = mockClient(SecretsManagerClient);
  onTestFinished(() => {
    ssm.restore();
    manager.restore();
  });
  ssm.on(GetParametersCommand).callsFake(({ Names = [] }: { Names?: string[] }) => ({
    Parameters: Names.flatMap((Name) => (Name in parameters ? [{ Name, Value: parameters[Name] }] : [])),
  }));
  for (const [SecretId, SecretString] of Object.entries(secrets))
    manager.on(GetSecretValueCommand, { SecretId }).resolves({ SecretString });
  return { ssm, manager };
};

test("secrets come from both stores, ten parameters a call, each decrypted and asked for once", async () => {
  const names = Array.from({ length: 12 }, (_, n) => `P${n}`);
  const { ssm } = setup(Object.fromEntries(names.map((name) => [`/prod/${name}`, `value of ${name}`])), {
    "notes/prod": '{"password": "p1", "user": "u1"}',
  });
  const references = {
    ...Object.fromEntries(names.map((name) => [name, `ssm:/{stage}/${name}`])),
    PASSWORD: "secretsmanager:notes/{stage}#password",
    WHOLE: "secretsmanager:notes/{stage}",
  };
  expect(await readSecrets(references, HERE)).toEqual({
    ...Object.fromEntries(names.map((name) => [name, `value of ${name}`])),
    PASSWORD: "p1",
    WHOLE: '{"password": "p1", "user": "u1"}',
  });
  const calls = ssm.commandCalls(GetParametersCommand).map(({ args }) => args[0].input);
  expect(calls.map(({ Names }) => Names?.length)).toEqual([10, 2]);
  expect(calls.every(({ WithDecryption }) => WithDecryption === true)).toBe(true);
});

test.each([
  ["a parameter that is not there", { K: "ssm:/none" }, "the secret ssm:/none does not exist or is empty"],
  [
    "a key that is not there",
    { K: "secretsmanager:s#none" },
    'the secret secretsmanager:s has no text under "none"',
  ],
  [
    "a secret that is no JSON",
    { K: "secretsmanager:t#a" },
    'the secret secretsmanager:t has no text under "a"',
  ],
])("%s is named without any value", async (_, references, message) => {
  setup({}, { s: '{"password": "hush"}', t: "hush" });
  await expect(readSecrets(references, HERE)).rejects.toThrow(message);
  await expect(readSecrets(references, HERE)).rejects.not.toThrow("hush");
});

test("a secret that may not be read is named with the store's reason", async () => {
  const { manager } = setup({});
  manager
    .on(GetSecretValueCommand)
    .rejects(Object.assign(new Error("no"), { name: "AccessDeniedException" }));
  await expect(readSecrets({ K: "secretsmanager:s" }, HERE)).rejects.toThrow(
    "the secret secretsmanager:s cannot be read: AccessDeniedException",
  );
});

test("a worker's environment gets the secrets of its own pool's jobs", async () => {
  const { ssm } = setup({ "/a": "1", "/b": "2" });
  const jobs = [
    definition({ name: "a", secrets: { A: "ssm:/a" } }),
    definition({ name: "b", pool: "slow", secrets: { B: "ssm:/b" } }),
  ];
  const environment = { HOME: "/" };
  await fillSecrets(HERE, { jobs }, "default", environment);
  expect(environment).toEqual({ HOME: "/", A: "1" });
  await fillSecrets(HERE, { jobs: [] }, "default", environment);
  expect(ssm.commandCalls(GetParametersCommand)).toHaveLength(1);
});
