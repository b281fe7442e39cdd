/** `npm run bench:bytes`: records the size of every bundle, for the test that holds them to it. */
import { writeFileSync } from "node:fs";
import { bundleFunctions } from "../infra/artifacts.ts";

const sizes = [...(await bundleFunctions())].map(([file, text]) => [file, Buffer.byteLength(text)]);
const file = new URL("./bundle-bytes.json", import.meta.url);
writeFileSync(file, `${JSON.stringify(Object.fromEntries(sizes), undefined, 2)}\n`);
