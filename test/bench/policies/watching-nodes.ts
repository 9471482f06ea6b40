import { readFileSync } from "node:fs";
import { connect } from "node:http2";
import { orderedPath } from "../../fakes/watching-node.ts";

/**
 * So many nodes that follow their policies, each over a connection of its own, in a process apart from the server's. On
 * stdout: `ready`, then `all MS` (of the epoch) whenever every node has heard something anew, and `marks N`, the pods that
 * were told since.
 */
const [url = "", caFile = "", count = "0"] = process.argv.slice(2);
const ca = readFileSync(caFile);
/** Connections under way at a time. */
const atOnce = 20;

const nodes = Number(count);
const heard = new Set<number>();
let marks = 0;
let told = 0;

const say = (line: string): void => console.log(line);

function follow(i: number): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const session = connect(url, { ca });
  session.on("error", reject);
  const headers = { authorization: `Bearer node-node-${i}`, accept: "application/vnd.kubernetes.protobuf" };
  const stream = session.request({ ":path": orderedPath(`node-${i}`), ...headers });
  let isReady = false;
  stream.on("data", (chunk: Buffer) => {
    if (isReady) return hear(i, chunk);
    isReady = chunk.includes("BOOKMARK");
    if (isReady) resolve();
  });
  stream.on("error", reject);
  return promise;
}

function hear(i: number, chunk: Buffer): void {
  for (let at = chunk.indexOf("ComputedPod"); at >= 0; at = chunk.indexOf("ComputedPod", at + 1)) marks++;
  heard.add(i);
  if (heard.size < nodes) return;
  heard.clear();
  say(`all ${performance.timeOrigin + performance.now()}`);
}

for (let i = 0; i < nodes; i += atOnce)
  await Promise.all(Array.from({ length: Math.min(atOnce, nodes - i) }, (_, j) => follow(i + j)));
say("ready");
setInterval(() => {
  if (told === marks) return;
  told = marks;
  say(`marks ${marks}`);
}, 50);
