import { Conflict } from "../../core/errors.ts";

/** Another attempt has the run: whatever this one would still do, it must not. */
export const leaseLost = () => new Conflict("lease_lost", "another attempt has this run by now");
