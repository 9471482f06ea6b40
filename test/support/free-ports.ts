import { createServer } from "node:net";

/**
 * Below the kernel's ports for outgoing connections (32768 and more), which any program could take before the owner
 * listens there.
 */
const first = 20_000;
const blockSize = 60;
const blocks = 200;

/** What is left of this process's own block, and the block that it tries next; processes begin at different ones. */
let own: number[] = [];
let nextBlock = (process.pid * 97) % blocks;

/**
 * So many ports of 127.0.0.1 on which nobody listens now, and which no other test file is told: it may take a while until
 * whoever they are for listens there.
 */
export async function freePorts(wanted: number): Promise<readonly number[]> {
  const ports: number[] = [];
  for (let tries = 0; ports.length < wanted && tries < blocks * blockSize; tries++) {
    if (own.length === 0) own = await claimBlock();
    const port = own.shift();
    if (port !== undefined && (await isFree({ port, host: "127.0.0.1" }))) ports.push(port);
  }
  if (ports.length < wanted)
    throw new Error(`Cannot find ${wanted} free ports from ${first} on: there are ${ports.length}`);
  return ports;
}

/** A block is its holder's until that ends: the kernel gives the name of a socket without a file to one at a time. */
async function claimBlock(): Promise<number[]> {
  for (let tries = 0; tries < blocks; tries++) {
    const block = nextBlock++ % blocks;
    if (await isFree({ path: `\0pipette-test-ports-${block}` }, "hold"))
      return Array.from({ length: blockSize }, (_, i) => first + block * blockSize + i);
  }
  throw new Error(`Cannot claim ports for a test: all ${blocks} blocks are held, wanted one`);
}

/** @param then "hold" keeps it until this process ends */
function isFree(place: { port: number; host: string } | { path: string }, then?: "hold"): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const server = createServer();
  server.once("error", () => resolve(false));
  server.listen(place, () => {
    if (then === "hold") {
      server.unref();
      resolve(true);
    } else server.close(() => resolve(true));
  });
  return promise;
}
