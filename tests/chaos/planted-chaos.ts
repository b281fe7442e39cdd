import { FAULTS } from "../mutants/faults/all.ts";
import type { PlantedFault } from "../mutants/planted.ts";
import { makeWorkspace } from "../mutants/workspace.ts";

/** Longer than a chaos run of any length that makes sense, so that a fault that hangs it ends too. */
const LONGEST_MS = 300_000;

/** The one planted fault with the text in its name. @throws TypeError when it is not exactly one */
export const faultNamed = (text: string): PlantedFault => {
  const exact = FAULTS.filter(({ name }) => name === text);
  const found = exact.length > 0 ? exact : FAULTS.filter(({ name }) => name.includes(text));
  const [fault] = found;
  if (fault !== undefined && found.length === 1) return fault;
  const names = found.map(({ name }) => `\n  ${name}`).join("");
  throw new TypeError(`${found.length} planted faults have "${text}" in their name, not one${names}`);
};

export interface Bitten {
  /** It found a broken promise; what it printed says which. */
  readonly noticed: boolean;
  readonly printed: string;
  /** Its last line: the counts. */
  readonly summary: string;
}

/** Plants the fault in a copy of the repository, and lets chaos run there with the given arguments. */
export const chaosWith = async (fault: PlantedFault, args: readonly string[]): Promise<Bitten> => {
  const workspace = await makeWorkspace();
  try {
    await workspace.plant(fault);
    const { stdout, stderr } = await workspace.run(["tests/chaos/chaos.ts", ...args], LONGEST_MS);
    const summary = stdout.trim().split("\n").at(-1) ?? "";
    return { noticed: /^(lost|doubled|stuck): /m.test(stderr), printed: stderr, summary };
  } finally {
    await workspace.remove();
  }
};
