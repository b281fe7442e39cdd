declare module "dynalite" {
  import type { Server } from "node:http";

  interface Options {
    /** A folder for LevelDB; absent = in memory. */
    readonly path?: string;
    readonly createTableMs?: number;
    readonly deleteTableMs?: number;
    readonly updateTableMs?: number;
  }

  export default function dynalite(options?: Options): Server;
}
