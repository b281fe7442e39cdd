import type { Manifest } from "../lib/core/jobs/job.ts";
import { PINGS } from "../lib/core/monitors/monitor.ts";
import {
  allow,
  getArn,
  placeholder,
  type Resources,
  ref,
  type Statement,
  sub,
  type Value,
} from "./cloudformation.ts";
import {
  type Deployment,
  type FunctionKind,
  functionKey,
  functionLogicalId,
  hasPings,
  pingsName,
} from "./naming.ts";

const API = "BelfryPingApi";
const SECRET = "BelfryPingSecret";

/** Anybody may ask; so that nobody's flood takes the account's concurrency from the jobs, or runs up a bill. */
const THROTTLE = { ThrottlingRateLimit: 50, ThrottlingBurstLimit: 100 } as const;

/** An HTTP API with the one address that monitors ping, and the secret of its keys, which is made with the stack. */
export const pingResources = (deployment: Deployment, manifest: Manifest): Resources => {
  if (!hasPings(manifest)) return {};
  const name = pingsName(deployment);
  const functionArn = getArn(functionLogicalId(functionKey("ping")));
  return {
    [SECRET]: {
      Type: "AWS::SecretsManager::Secret",
      Properties: {
        Name: name,
        Description: "Belfry: what the keys in the addresses of monitors are made of",
        GenerateSecretString: { PasswordLength: 64, ExcludePunctuation: true },
      },
    },
    [API]: {
      Type: "AWS::ApiGatewayV2::Api",
      Properties: { Name: name, ProtocolType: "HTTP", Description: "Belfry: pings of monitors" },
    },
    [`${API}Integration`]: {
      Type: "AWS::ApiGatewayV2::Integration",
      Properties: {
        ApiId: ref(API),
        IntegrationType: "AWS_PROXY",
        IntegrationUri: functionArn,
        PayloadFormatVersion: "2.0",
      },
    },
    [`${API}Route`]: {
      Type: "AWS::ApiGatewayV2::Route",
      Properties: {
        ApiId: ref(API),
        RouteKey: `ANY ${PINGS}{proxy+}`,
        AuthorizationType: "NONE",
        Target: sub(`integrations/${placeholder(`${API}Integration`)}`),
      },
    },
    [`${API}Stage`]: {
      Type: "AWS::ApiGatewayV2::Stage",
      Properties: {
        ApiId: ref(API),
        StageName: "$default",
        AutoDeploy: true,
        DefaultRouteSettings: { ...THROTTLE },
      },
    },
    [`${API}Permission`]: {
      Type: "AWS::Lambda::Permission",
      Properties: {
        Action: "lambda:InvokeFunction",
        FunctionName: functionArn,
        Principal: "apigateway.amazonaws.com",
        SourceArn: sub(
          `arn:${placeholder("AWS::Partition")}:execute-api:${placeholder("AWS::Region")}:${placeholder("AWS::AccountId")}:${placeholder(API)}/*`,
        ),
      },
    },
  };
};

/** Reading the secret, for whoever judges an address or tells one. */
export const pingStatements = (manifest: Manifest): readonly Statement[] =>
  hasPings(manifest) ? [allow(["secretsmanager:GetSecretValue"], [ref(SECRET)])] : [];

export const pingVariables = (manifest: Manifest, kind: FunctionKind): { readonly [name: string]: Value } => {
  if (!hasPings(manifest) || (kind !== "ping" && kind !== "operate")) return {};
  return {
    BELFRY_PING_SECRET: ref(SECRET),
    ...(kind === "operate" ? { BELFRY_PING_URL: { "Fn::GetAtt": [API, "ApiEndpoint"] } } : {}),
  };
};

export const pingOutputs = (
  manifest: Manifest,
): { readonly [name: string]: { readonly Description: string; readonly Value: Value } } =>
  hasPings(manifest)
    ? {
        BelfryPingUrl: {
          Description: "What the addresses of monitors begin with",
          Value: { "Fn::GetAtt": [API, "ApiEndpoint"] },
        },
      }
    : {};
