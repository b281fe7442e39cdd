/** The part of the Standard Schema interface (standardschema.dev) that a check needs. */
export interface StandardSchema<Input = unknown, Output = Input> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => SchemaResult<Output> | Promise<SchemaResult<Output>>;
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
  };
}

export interface SchemaIssue {
  readonly message: string;
  readonly path?: ReadonlyArray<PropertyKey | { readonly key: PropertyKey }> | undefined;
}

export type SchemaResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly SchemaIssue[] };

export const isStandardSchema = (value: unknown): value is StandardSchema => {
  if ((typeof value !== "object" && typeof value !== "function") || value === null) return false;
  const standard: unknown = "~standard" in value ? value["~standard"] : undefined;
  return (
    typeof standard === "object" &&
    standard !== null &&
    "validate" in standard &&
    typeof standard.validate === "function"
  );
};

const pathOf = (issue: SchemaIssue): string =>
  (issue.path ?? []).map((part) => `.${String(typeof part === "object" ? part.key : part)}`).join("");

/** The input as the schema gives it on, or one text per fault: `input.days: Invalid type: ...`. */
export const checkInput = async (
  schema: StandardSchema,
  input: unknown,
): Promise<
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly problems: readonly string[] }
> => {
  const result = await schema["~standard"].validate(input);
  if (result.issues === undefined) return { ok: true, value: result.value };
  return { ok: false, problems: result.issues.map((issue) => `input${pathOf(issue)}: ${issue.message}`) };
};
