import { expect, test } from "vitest";
import { withKey } from "../../../cli/dev/operate-server.ts";

const guarded = withKey("the-key", async () => new Response("in"));
const ask = (headers: Record<string, string>) =>
  guarded(new Request("http://127.0.0.1:4747/v1/jobs", { headers }));

test("the key lets a request in", async () => {
  expect(await (await ask({ authorization: "Bearer the-key" })).text()).toBe("in");
});

test.each([
  {},
  { authorization: "Bearer" },
  { authorization: "Bearer the-key2" },
  { authorization: "the-key" },
])("%j is refused", async (headers) => {
  const answer = await ask(headers as Record<string, string>);
  expect(answer.status).toBe(401);
  expect(await answer.json()).toMatchObject({ code: "unauthorized", status: 401 });
});
