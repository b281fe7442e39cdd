/** A few that stand for all, by name: a slice for every change. */
export const QUICK: readonly string[] = [
  "a claim goes over a record",
  "a start without the epoch",
  "a take-over without a margin for clocks",
  "a crash is not counted",
  "a lease is renewed, and a result written, without the fence",
  "a cancel takes a running run from its holder",
  "a release without the epoch",
  "a hand-over where there is no room",
  "locked: claimed and not sent",
  "a parked holder is taken for over",
  "the lock is released before the result is stored",
  "reopened before the look is noted",
  "a shard starts although it is done",
  "a stride of an earlier attempt set counts",
];
