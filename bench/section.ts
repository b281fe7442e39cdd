/** A line of the table of budgets. */
export interface Budget {
  readonly what: string;
  readonly budget: string;
  readonly measured: string;
  readonly met: boolean;
}

/** One part of the results, as Markdown, and what it says of the budgets. */
export interface Section {
  readonly title: string;
  readonly text: string;
  readonly budgets: readonly Budget[];
}

export const table = (head: readonly string[], rows: readonly (readonly string[])[]): string =>
  [head, head.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n");
