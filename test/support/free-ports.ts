import { createServer } from "node:net";

/**
 * Below the kernel's ports for outgoing connections (32768 and more), which any program could take before the owner
 * listens there.
 */
const first = 20_000;
const count = 12_000;
/** Processes begin at different places, so that they mostly do not meet. */
let next = (process.pid * 97) % count;

/** So many ports of 127.0.0.1 on which nobody listens now. */
export async function freePorts(wanted: number): Promise<readonly number[]> {
  const ports: number[] = [];
  for (let tries = 0; ports.length < wanted && tries < count; tries++) {
    const port = first + (next++ % count);
    if (await isFree(port)) ports.push(port);
  }
  if (ports.length < wanted)
    throw new Error(`Cannot find ${wanted} free ports from ${first} on: there are ${ports.length}`);
  return ports;
}

function isFree(port: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const server = createServer();
  server.once("error", () => resolve(false));
  server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
  return promise;
}
