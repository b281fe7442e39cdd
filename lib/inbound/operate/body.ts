import type { Context } from "hono";
import { InvalidInput } from "../../core/errors.ts";

/** The request's JSON; no body is an empty object. @throws InvalidInput `invalid_request` */
export const bodyOf = async (context: Context): Promise<unknown> => {
  const text = await context.req.text();
  if (text === "") return {};
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new InvalidInput("invalid_request", "the request's body is no JSON", {}, { cause });
  }
};
