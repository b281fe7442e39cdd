/**
 * List prices in US dollars, without the free tier, as their public price pages had them on that day. The one place
 * where a price is written.
 * @see https://aws.amazon.com/cloudwatch/pricing/ and https://aws.amazon.com/kms/pricing/
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
} as const;
