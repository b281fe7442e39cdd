import { Unavailable } from "../../core/errors.ts";

/** The handler has done its work: it is worth asking more than once before that is given up. */
const TRIES = 3;

/**
 * Asks again while the table does not answer. Only for writes that may be done twice: a value aside is the same
 * again, a transition is refused and shows who wrote it.
 * @throws Unavailable after three tries, and whatever else the write throws at once
 */
export const repeated = async <Answer>(write: () => Promise<Answer>): Promise<Answer> => {
  for (let left = TRIES - 1; left > 0; left--) {
    try {
      return await write();
    } catch (error) {
      if (!(error instanceof Unavailable)) throw error;
    }
  }
  return write();
};
