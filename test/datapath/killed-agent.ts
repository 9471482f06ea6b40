import { existsSync } from "node:fs";
import { openDataPath, requestFor } from "./bridge-fixture.ts";

/**
 * What `bridge-killed.test.ts` kills: one ADD and one DEL between two marks that the trace shows. Without
 * `start`, whose child processes would be followed and killed instead.
 */
const [, , netns = "", mark = ""] = process.argv;
const dataPath = openDataPath();
const request = requestFor("killed", netns, 10);
existsSync(mark);
await dataPath.attach(request);
await dataPath.detach(request.owner);
existsSync(mark);
await dataPath[Symbol.asyncDispose]();
