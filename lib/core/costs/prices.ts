/**
 * List prices in US dollars, without the free tier, as their public price pages had them on that day. The one place
 * where a price is written.
 * @see https://aws.amazon.com/cloudwatch/pricing/ and https://aws.amazon.com/kms/pricing/
 * @see https://aws.amazon.com/eventbridge/pricing/ and https://aws.amazon.com/lambda/pricing/ (arm64)
 * @see https://aws.amazon.com/sqs/pricing/ (standard) and https://aws.amazon.com/dynamodb/pricing/on-demand/
 * @see https://aws.amazon.com/secrets-manager/pricing/
 */
export const PRICES = {
  region: "us-east-1",
  asOf: "2026-11-30",
  /** A month; of an account's first 10,000. Billed for the hours in which the metric is written. */
  customMetric: 0.3,
  /** A month, for each metric that the alarm watches, at periods of a minute or more. */
  alarmMetric: 0.1,
  /** A month; an account's first three cost nothing. */
  dashboard: 3,
  /** A month. */
  key: 1,
  /** A month. */
  secret: 0.4,
  /** A million. */
  scheduleInvocations: 1,
  /** A million. */
  functionRequests: 0.2,
  /** A gigabyte of memory for a second. */
  functionGbSecond: 0.000_013_333_4,
  /** A million; each counts as one up to 64 KB. Empty receives are billed too. */
  queueRequests: 0.4,
  /** A million. */
  writeUnits: 0.625,
  /** A million. */
  readUnits: 0.125,
  /** A gigabyte taken in. */
  logGb: 0.5,
} as const;
