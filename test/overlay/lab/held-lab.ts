import { Lab } from "./lab.ts";

/** A lab of one node that stands until its process is killed, for the test of what that leaves behind. */
const lab = await Lab.ground({ nodes: ["a"] });
console.log(lab.directory);
setInterval(() => undefined, 60_000);
