import { once } from "node:events";
import { createServer } from "node:http";
import { testJob } from "belfry/testing";
import { expect, test } from "vitest";
import { setup } from "./notes.ts";

const BROKEN = "http://pages.example/broken";
const HOUR_MS = 3_600_000;
const thisHour = (): Date => new Date(Math.floor(Date.now() / HOUR_MS) * HOUR_MS);

/** A page that is never answered. */
const silentPage = async () => {
  const server = createServer(() => undefined).listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  return {
    url: `http://127.0.0.1:${address.port}/`,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
};

test("each seeded link is asked for, and the broken one is found", async () => {
  await using store = await setup({ embedded: true });
  const { linksJob } = await store.loadWorker();
  const slot = thisHour();
  const tested = testJob(linksJob, { slot });
  expect((await tested.run()).result).toEqual({ checkedCount: 6, broken: [BROKEN] });
  const found = await store.itemsOf("link");
  expect(found.map(({ url, status, checkedAt }) => ({ url, status, checkedAt }))).toEqual(
    found.map(({ url }) => ({ url, status: url === BROKEN ? 404 : 200, checkedAt: slot.toISOString() })),
  );
  expect(tested.lines).toMatchObject([{ level: "warn", fields: { url: BROKEN, status: 404 } }]);
});

test("a page that does not answer has a time-out of its own, and is a result", async () => {
  await using page = await silentPage();
  await using store = await setup({ embedded: true });
  const { linksJob, openLinks } = await store.loadWorker();
  await openLinks();
  await store.put({ pk: "link", sk: "silent", url: page.url, status: 200 });
  const input = { timeoutMs: 500, atOnce: 2 };
  const run = await testJob(linksJob, { slot: thisHour(), input }).run();
  expect(run.result).toMatchObject({ checkedCount: 7 });
  const silent = (await store.itemsOf("link")).find(({ sk }) => sk === "silent");
  expect(silent).toMatchObject({ problem: "TimeoutError" });
  expect(silent).not.toHaveProperty("status");
});

test("a link that leads nowhere is kept with the reason, and stops no other", async () => {
  await using store = await setup({ embedded: true });
  const { linksJob, openLinks } = await store.loadWorker();
  await openLinks();
  await store.put({ pk: "link", sk: "a-typing-error", url: "htp//pages" });
  const run = await testJob(linksJob, { slot: thisHour() }).run();
  expect(run.result).toEqual({ checkedCount: 7, broken: ["htp//pages", BROKEN] });
  expect(await store.itemsOf("link")).toContainEqual(
    expect.objectContaining({ sk: "a-typing-error", problem: "ERR_INVALID_URL" }),
  );
});

test("delivered twice, and killed before its end is recorded, it finds the same", async () => {
  await using store = await setup({ embedded: true });
  const { linksJob } = await store.loadWorker();
  const slot = thisHour();
  const twice = await testJob(linksJob, { slot }).deliverTwice();
  const found = await store.itemsOf("link");
  const tested = testJob(linksJob, { slot });
  tested.killHere("before-record");
  const run = await tested.run();
  expect(twice).toMatchObject({ duplicates: 1, result: run.result });
  expect(run.attempts.map(({ outcome }) => outcome)).toEqual(["lost", "returned"]);
  expect(await store.itemsOf("link")).toEqual(found);
});

test("an earlier slot that runs late does not overwrite what a later one found", async () => {
  await using store = await setup({ embedded: true });
  const { linksJob } = await store.loadWorker();
  const slot = thisHour();
  await testJob(linksJob, { slot }).run();
  const found = await store.itemsOf("link");
  await testJob(linksJob, { slot: new Date(slot.getTime() - HOUR_MS) }).run();
  expect(await store.itemsOf("link")).toEqual(found);
});
