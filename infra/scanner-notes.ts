import type { Value } from "./cloudformation.ts";

type Note = readonly [check: string, why: string];

const NEW_BUCKET = "of a new bucket AWS blocks all public access by itself";

/** What the scanner checkov finds in a resource of the stack, and why it stays so, by type. */
const NOTES: { readonly [type: string]: readonly Note[] } = {
  "AWS::Lambda::Function": [
    ["CKV_AWS_115", "reserved concurrency would be taken from a new account's ten; mappings limit the pools"],
    [
      "CKV_AWS_116",
      "what fails goes to a failure destination or stays in its queue, which this check does not see",
    ],
    ["CKV_AWS_117", "a function is in a network only where its pool asks for one"],
    ["CKV_AWS_173", "the variables hold names and addresses; secrets are read at the start"],
  ],
  "AWS::Logs::LogGroup": [["CKV_AWS_158", "encrypted with CloudWatch's own key"]],
  "AWS::DynamoDB::Table": [["CKV_AWS_119", "encrypted with DynamoDB's own key"]],
  "AWS::SQS::Queue": [
    ["CKV_AWS_27", "encrypted with keys of SQS (SqsManagedSseEnabled), which this check does not see"],
  ],
  "AWS::SecretsManager::Secret": [
    ["CKV_AWS_149", "encrypted with the key of Secrets Manager, and read by functions of this account alone"],
  ],
  "AWS::ApiGatewayV2::Stage": [["CKV_AWS_95", "a log of its requests would hold the keys of the addresses"]],
  "AWS::ApiGatewayV2::Route": [["CKV_AWS_309", "each address has a key, which the function judges"]],
  "AWS::S3::Bucket": [
    [
      "CKV_AWS_18",
      "holds what the Serverless Framework uploads; set provider.deploymentBucket for one with a log",
    ],
    ["CKV_AWS_21", "each deploy has a folder of its own"],
    ...["CKV_AWS_53", "CKV_AWS_54", "CKV_AWS_55", "CKV_AWS_56"].map((check): Note => [check, NEW_BUCKET]),
  ],
};

/** Metadata of a resource of that type; undefined where the scanner has nothing to find. */
export const scannerNotes = (type: string): Value | undefined => {
  const notes = NOTES[type];
  return notes && { checkov: { skip: notes.map(([id, comment]) => ({ id, comment })) } };
};
