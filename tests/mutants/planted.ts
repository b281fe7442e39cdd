/** A fault to plant: in the file, the text that must be found exactly once becomes the other. */
export interface PlantedFault {
  /** What the fault is, in words; also what `--only` looks for. */
  readonly name: string;
  readonly file: string;
  readonly find: string;
  readonly replace: string;
  /** The promise that it breaks. */
  readonly violates: string;
  /** Test files and folders that most likely notice it: they are asked first. Absent = the simulation is. */
  readonly near?: readonly string[];
}

/** The same faults, with the tests that are asked first. */
export const near = (faults: readonly PlantedFault[], ...tests: readonly string[]): readonly PlantedFault[] =>
  faults.map((fault) => ({ ...fault, near: tests }));

/** The faults of one file. `[name, find, replace, violates]`, so that a list reads as a table. */
export const faultsIn = (
  file: string,
  rows: readonly (readonly [name: string, find: string, replace: string, violates: string])[],
): readonly PlantedFault[] =>
  rows.map(([name, find, replace, violates]) => ({ name, file, find, replace, violates }));

/** The text with the fault in it. @throws TypeError when the place is not exactly one. */
export const withFault = (text: string, { name, file, find, replace }: PlantedFault): string => {
  const places = text.split(find).length - 1;
  if (places !== 1) throw new TypeError(`"${name}": its text is ${places} times in ${file}, not once`);
  return text.replace(find, () => replace);
};
