import { expect, test } from "vitest";
import { faultNamed } from "./planted-chaos.ts";

test("a fault to plant under chaos is found by its name, or by a text that no other one has", () => {
  expect(faultNamed("a claim goes over a record").file).toBe("lib/core/runs/transitions.ts");
  expect(faultNamed("room for one more holder").name).toBe("room for one more holder than the policy says");
});

test.each([
  ["no such fault", /^0 planted faults have "no such fault" in their name, not one$/],
  ["without the fence", /^\d+ planted faults have "without the fence" in their name, not one\n {2}.*\n {2}/],
])("the text %j, which names not one of them, is an error that says which it names", (text, message) => {
  expect(() => faultNamed(text)).toThrow(message);
});
