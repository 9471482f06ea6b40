import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { ownNamedNamespaces } from "../support/own-named-namespaces.ts";
import { executables, scratch } from "./plugin.ts";

export interface RealAgent extends AsyncDisposable {
  /** The plugin's configuration for the agent's network, without `cniVersion`. */
  readonly conf: Readonly<Record<string, unknown>>;
  readonly dataDir: string;
  /** A new network namespace; answers its path. */
  addPod(): string;
  /** Links that stand in the agent's own namespace, besides the loopback. */
  links(): readonly string[];
}

/** The compiled agent with the bridge data path, alone in a network namespace of its own. */
export async function startRealAgent(): Promise<RealAgent> {
  const directory = scratch();
  const dataDir = `${directory.path}/data`;
  const socket = `${directory.path}/run/cni.sock`;
  const name = `pt-cf-${process.pid}-${Math.floor(performance.now())}`;
  const pods: string[] = [];
  const ip = (...args: string[]): string => {
    const done = spawnSync("ip", args, { encoding: "utf8" });
    if (done.status !== 0) throw new Error(`Cannot run ip ${args.join(" ")}: ${done.stderr}`);
    return done.stdout;
  };
  mkdirSync(dataDir);
  const subnets = ["10.66.0.0/24", "fd00:66::/64"];
  const yaml = {
    socket,
    dataDir,
    cni: { confDir: directory.path, fileName: "" },
    networks: [{ name: "n", subnets, bridge: "ptcf0", masquerade: false }],
  };
  // JSON is YAML.
  writeFileSync(`${directory.path}/agent.yaml`, JSON.stringify(yaml));
  ownNamedNamespaces();
  ip("netns", "add", name);
  const command = [
    "netns",
    "exec",
    name,
    `${executables}/pipette`,
    "agent",
    "--config",
    `${directory.path}/agent.yaml`,
  ];
  const agent = spawn("ip", command, { stdio: ["ignore", "ignore", "pipe"] });
  const ended = new Promise<void>((resolve) => agent.on("close", () => resolve()));
  let log = "";
  const ready = new Promise<void>((resolve, reject) => {
    agent.stderr.on("data", (chunk) => {
      log += chunk;
      if (log.includes('"message":"ready"')) resolve();
    });
    agent.on("close", () => reject(new Error(`Cannot start the agent: it said ${log}`)));
  });
  const dispose = async (): Promise<void> => {
    agent.kill("SIGTERM");
    await ended;
    for (const pod of [...pods, name]) spawnSync("ip", ["netns", "del", pod]);
    directory[Symbol.dispose]();
  };
  await ready.catch(async (caught) => {
    await dispose();
    throw caught;
  });
  const ranges = subnets.map((subnet) => [{ subnet }]);
  return {
    conf: { name: "n", type: "pipette", socket, dataDir, ipam: { type: "pipette-ipam", dataDir, ranges } },
    dataDir,
    addPod: () => {
      const pod = `${name}-p${pods.length}`;
      ip("netns", "add", pod);
      pods.push(pod);
      return `/run/netns/${pod}`;
    },
    links: () =>
      ip("-n", name, "-o", "link")
        .split("\n")
        .map((line) => line.split(": ")[1]?.split("@")[0] ?? "")
        .filter((link) => link !== "" && link !== "lo"),
    [Symbol.asyncDispose]: dispose,
  };
}
