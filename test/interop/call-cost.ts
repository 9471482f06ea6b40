import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { cniService } from "../../shared/proto/services.ts";
import { callUnary } from "../../shared/rpc/call.ts";
import { compileGoPrograms, missingPackages } from "./go-programs.ts";
import { startPeer } from "./peer.ts";

/**
 * What one call from plugin to agent costs, connecting included, in microseconds: the first one of a process, then
 * the others one by one. The server does nothing but echo.
 *
 * usage: bun test/interop/call-cost.ts [CALLS]
 */
const calls = Number(process.argv[2] ?? 2000);
const folder = mkdtempSync(join(tmpdir(), "pt-call-cost-"));
const socket = join(folder, "cni.sock");
const jsServer = new URL("grpc-js-server.ts", import.meta.url).pathname;

const conf = { cniVersion: "1.1.0", name: "pods", type: "pipette", ipam: { type: "pipette-ipam" } };
const cniArgs = {
  containerId: "echo",
  netns: "/var/run/netns/cni-0c9ae1a4",
  ifname: "eth0",
  args: "K8S_POD_NAMESPACE=default;K8S_POD_NAME=web-0",
  path: "/opt/cni/bin",
  networkConfiguration: new TextEncoder().encode(JSON.stringify(conf)),
};

async function timedCallUs(): Promise<number> {
  const began = Bun.nanoseconds();
  await callUnary(socket, cniService.cmdAdd, { cniArgs }, { timeoutMs: 10_000 });
  return (Bun.nanoseconds() - began) / 1000;
}

async function measure(name: string, command: string, args: readonly string[]): Promise<void> {
  await using _peer = await startPeer(command, args, socket);
  const firstUs = await timedCallUs();
  const allUs: number[] = [];
  for (let i = 0; i < calls; i++) allUs.push(await timedCallUs());
  allUs.sort((a, b) => a - b);
  const at = (share: number): string => (allUs[Math.floor(share * allUs.length)] ?? 0).toFixed(0).padStart(6);
  console.log(
    `${name.padEnd(26)} first ${firstUs.toFixed(0).padStart(6)}  median ${at(0.5)}  p90 ${at(0.9)}  p99 ${at(0.99)}`,
  );
}

try {
  await measure("grpc-js behind the front", process.execPath, [jsServer, socket, "fronted", "4096"]);
  await measure("grpc-js", process.execPath, [jsServer, socket, "bare"]);
  if (missingPackages().length === 0) await measure("grpc-go", compileGoPrograms().server, [socket]);
} finally {
  rmSync(folder, { recursive: true });
}
