import { devNull } from "node:os";
import { expect, test } from "vitest";
import { attachedEndpoints } from "../../../cli/dev/endpoints.ts";
import { childEnvironment } from "../../../cli/dev/environment.ts";
import { InvalidInput } from "../../../lib/core/errors.ts";

test.each([
  [{}, {}],
  [{ AWS_ENDPOINT_URL: "" }, {}],
  [
    { AWS_ENDPOINT_URL: "http://127.0.0.1:4566/" },
    { dynamodb: "http://127.0.0.1:4566", sqs: "http://127.0.0.1:4566" },
  ],
  [{ AWS_ENDPOINT_URL_SQS: "http://localhost:9324" }, { sqs: "http://localhost:9324" }],
  [
    { AWS_ENDPOINT_URL: "http://[::1]:4566", AWS_ENDPOINT_URL_DYNAMODB: "http://127.1.2.3:8000" },
    { dynamodb: "http://127.1.2.3:8000", sqs: "http://[::1]:4566" },
  ],
])("%j attaches to %j", (environment, attached) => {
  expect(attachedEndpoints(environment, false)).toEqual(attached);
});

test.each([
  "https://sqs.us-east-1.amazonaws.com",
  "http://192.168.1.4:4566",
  "http://127.0.0.1.example.com:4566",
  "http://localhost.example.com",
  "http://localhost@example.com",
  "http://0.0.0.0:4566",
])("%s is beyond this machine, and used only when that is allowed", (url) => {
  expect(() => attachedEndpoints({ AWS_ENDPOINT_URL_SQS: url }, false)).toThrow(
    expect.objectContaining({
      code: "remote_endpoint",
      message: expect.stringContaining("--allow-remote-endpoint"),
    }),
  );
  expect(attachedEndpoints({ AWS_ENDPOINT_URL_SQS: url }, true).sqs).toBe(url);
});

test.each(["localhost:4566", "nonsense", "file:///etc/passwd"])("%s is no endpoint", (url) => {
  expect(() => attachedEndpoints({ AWS_ENDPOINT_URL: url }, true)).toThrow(InvalidInput);
});

test("nothing of the caller's AWS set-up reaches a child", () => {
  const environment = childEnvironment(
    {
      PATH: "/bin",
      AWS_PROFILE: "production",
      AWS_ACCESS_KEY_ID: "AKIAREAL",
      AWS_SECRET_ACCESS_KEY: "real",
      AWS_SESSION_TOKEN: "real",
      AWS_REGION: "eu-west-1",
      AWS_ROLE_ARN: "arn:aws:iam::123456789012:role/admin",
      AWS_WEB_IDENTITY_TOKEN_FILE: "/token",
      AWS_CONTAINER_CREDENTIALS_FULL_URI: "http://169.254.170.2",
      BELFRY_EMBEDDED: "1",
    },
    { dynamodb: "http://127.0.0.1:1", sqs: "http://127.0.0.1:2" },
    false,
  );
  expect(environment).toEqual({
    PATH: "/bin",
    AWS_ENDPOINT_URL_DYNAMODB: "http://127.0.0.1:1",
    AWS_ENDPOINT_URL_SQS: "http://127.0.0.1:2",
    AWS_REGION: "us-east-1",
    AWS_ACCESS_KEY_ID: "test",
    AWS_SECRET_ACCESS_KEY: "test",
    AWS_CONFIG_FILE: devNull,
    AWS_SHARED_CREDENTIALS_FILE: devNull,
    AWS_EC2_METADATA_DISABLED: "true",
    BELFRY_STAGE: "dev",
    BELFRY_TABLE: "belfry-dev",
  });
});
