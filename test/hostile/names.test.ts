import { chmodSync, existsSync, lstatSync, mkdirSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { parseAgentConfig } from "../../agent/config/parse-agent-config.ts";
import { compileExecutables, run, variables } from "../conformance/plugin.ts";
import { describeWith } from "../support/requires.ts";
import { hostileNames, withZeros } from "./names.ts";

type Conf = Readonly<Record<string, unknown>>;
interface Call {
  readonly executable?: "pipette" | "pipette-ipam";
  readonly verb?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly conf?: Conf;
}

/** A runtime has at most this much room for a variable. */
const inEnvironment = hostileNames.filter((name) => name.length < 10_000);
const inText = [...hostileNames, ...withZeros];

/**
 * Every name of a plugin's call that becomes a path, a command or a part of one, and how many such names are all right
 * at its place: of a kernel's interface a dash, of a name's middle a dot.
 */
const places: readonly (readonly [string, readonly string[], (name: string, base: Conf) => Call])[] = [
  ["CNI_CONTAINERID", inEnvironment, (name) => ({ env: { CNI_CONTAINERID: name } })],
  ["CNI_IFNAME", inEnvironment, (name) => ({ env: { CNI_IFNAME: name } })],
  ["CNI_NETNS", inEnvironment, (name) => ({ executable: "pipette", env: { CNI_NETNS: name } })],
  [
    "CNI_ARGS",
    inEnvironment,
    (name) => ({ env: { CNI_ARGS: `IgnoreUnknown=1;K8S_POD_NAME=${name};K8S_POD_NAMESPACE=${name}` } }),
  ],
  [
    "CNI_PATH",
    inEnvironment,
    (name) => ({ executable: "pipette", env: { CNI_PATH: name }, conf: { ipam: { type: "evil" } } }),
  ],
  ["name", inText, (name) => ({ conf: { name } })],
  ["type", inText, (type) => ({ executable: "pipette", conf: { type } })],
  ["ipam.type", inText, (type) => ({ executable: "pipette", conf: { ipam: { type } } })],
  ["ipam.dataDir", relative(inText), (dataDir, { ipam }) => ({ conf: { ipam: { ...(ipam as Conf), dataDir } } })],
  [
    "ipam.resolvConf",
    relative(inText),
    (resolvConf, { ipam }) => ({ conf: { ipam: { ...(ipam as Conf), resolvConf } } }),
  ],
  ["dataDir", relative(inText), (dataDir) => ({ executable: "pipette", verb: "DEL", conf: { dataDir } })],
  ["logFile", relative(inText), (logFile) => ({ executable: "pipette", conf: { logFile } })],
  [
    "logFile of another program",
    ["/evil", "/evil.log/../evil"],
    (name, { logs }) => ({ executable: "pipette", conf: { logFile: `${logs}${name}` } }),
  ],
  ["socket", relative(inText), (socket) => ({ executable: "pipette", conf: { socket } })],
];

/** An absolute path is the configuration's author's to choose. */
function relative(names: readonly string[]): readonly string[] {
  return names.filter((name) => !name.startsWith("/"));
}

describeWith("a name that leads elsewhere", ["root", "linux"], () => {
  let root: string;
  beforeAll(compileExecutables);

  /** `here` is the working directory, `bin` CNI_PATH; an executable "evil" wherever a name could lead. */
  beforeEach(() => {
    root = join("/tmp", `pt-names-${process.pid}`);
    rmSync(root, { recursive: true, force: true });
    for (const name of ["here", "bin", "data", "logs"]) mkdirSync(join(root, name), { recursive: true, mode: 0o700 });
    for (const place of [root, join(root, "here"), join(root, "bin/..")]) {
      const evil = join(place, "evil");
      writeFileSync(evil, `#!/bin/sh\ntouch ${root}/executed\n`);
      chmodSync(evil, 0o755);
    }
  });
  afterEach(() => rmSync(root, { recursive: true, force: true }));

  /** Everything below, with size and kind, but for the leases themselves. */
  const tree = (): string[] =>
    readdirSync(root, { recursive: true })
      .map(String)
      .filter((name) => !/^data\/leases\.db(-wal|-shm)?$/.test(name))
      .map((name) => `${name} ${lstatSync(join(root, name)).mode} ${lstatSync(join(root, name)).size}`)
      .sort();

  test.each(places)(
    "as %s: answered, and nothing is made, changed or run outside of the leases",
    async (_, names, callOf) => {
      const ipam = { type: "pipette-ipam", dataDir: join(root, "data"), ranges: [[{ subnet: "10.79.0.0/16" }]] };
      // Nobody is there, and nobody comes.
      const agent = { socket: join(root, "none.sock"), addTimeoutMs: 100 };
      const base = { cniVersion: "1.1.0", name: "n", ...agent, ipam, logs: join(root, "logs") };
      const before = tree();
      const answers = await inTurns(names, async (name, i) => {
        const { executable = "pipette-ipam", verb = "ADD", env = {}, conf = {} } = callOf(name, base);
        const usual = { CNI_CONTAINERID: `c${i}`, CNI_PATH: join(root, "bin") };
        const stdin = { ...base, type: "pipette", ...conf };
        const ended = await run({
          executable,
          env: variables(verb, { ...usual, ...env }),
          stdin,
          cwd: join(root, "here"),
        });
        return { name, ended };
      });
      for (const { name, ended } of answers) {
        expect([0, 1], `${JSON.stringify(name)}: ${ended.stderr}`).toContain(ended.status);
        if (ended.stdout !== "") expect(JSON.parse(ended.stdout), name).toHaveProperty("cniVersion");
        // A library that reads "code" would take one of ours for a fault of the plugin.
        expect(ended.stdout, name).not.toContain('"code":100,');
      }
      expect(tree()).toEqual(before);
    },
  );

  test("the delegate is looked for in CNI_PATH's absolute directories only, as a file that is there", async () => {
    symlinkSync(join(root, "evil"), join(root, "bin", "linked"));
    const stdin = { cniVersion: "1.1.0", name: "n", type: "pipette", ipam: { type: "evil" } };
    for (const path of ["", ".", "..", ":", `./${root}`, "here:../here"]) {
      const env = variables("ADD", { CNI_PATH: path });
      const ended = await run({ executable: "pipette", env, stdin, cwd: join(root, "here") });
      expect(JSON.parse(ended.stdout)).toMatchObject({ code: 4, msg: expect.stringContaining("CNI_PATH") });
    }
    expect(existsSync(join(root, "executed"))).toBe(false);
  });
});

describe("a name that leads elsewhere in agent.yaml", () => {
  const network = { name: "pods", subnets: ["10.78.0.0/16"], bridge: "br0" };
  const etcd = { type: "etcd", endpoints: ["http://127.0.0.1:1"] };
  const ovs = (more: Conf): Conf => ({ dataPath: "ovs", ovs: more });
  const nodes = (registry: Conf, name = "a"): Conf => ({ nodes: { name, registry } });
  const inFile: Readonly<Record<string, (name: string) => Conf>> = {
    "networks[0].name": (name) => ({ networks: [{ ...network, name }] }),
    "networks[0].bridge": (bridge) => ({ networks: [{ ...network, bridge }] }),
    "cni.fileName": (name) => ({ cni: { fileName: `${name}.conflist` } }),
    "cni.confDir": (confDir) => ({ cni: { confDir } }),
    "cni.plugins[0]": (type) => ({ cni: { plugins: [{ type }] } }),
    socket: (socket) => ({ socket }),
    dataDir: (dataDir) => ({ dataDir }),
    "ovs.database": (database) => ovs({ database }),
    "ovs.gateway": (gateway) => ovs({ gateway }),
    "ovs.tunnelName": (tunnelName) => ovs({ tunnelName }),
    "ovs.uplink": (uplink) => ovs({ uplink }),
    "ovs.services.file": (file) => ovs({ services: { file, cidrs: ["10.96.0.0/16"] } }),
    "nodes.name": (name) => nodes(etcd, name),
    "nodes.registry.prefix": (name) => nodes({ ...etcd, prefix: `/${name}` }),
    "nodes.registry.key": (key) => nodes({ ...etcd, endpoints: ["https://h:1"], cert: "/c", key }),
    "nodes.registry.file": (file) => nodes({ type: "static", file }),
    "nodes.registry.token": (token) => nodes({ type: "kubernetes", token }),
  };
  /** A path that is whole is an administrator's to choose, and what a shell would read into a name no shell reads. */
  const paths = [
    "cni.confDir",
    "socket",
    "dataDir",
    "ovs.database",
    "ovs.services.file",
    "nodes.registry.key",
    "nodes.registry.file",
    "nodes.registry.token",
  ];
  const mayBe = (place: string, name: string): boolean => {
    if (paths.includes(place)) return name.startsWith("/");
    if (place === "cni.plugins[0]") return !/[/\\:]|^\.+$|[. ]$/.test(name) && /^[ -~]{1,240}$/.test(name);
    if (place === "cni.fileName" || place === "nodes.registry.prefix") return name === "evil.";
    return (
      /^(networks|ovs)/.test(place) && (name === "evil." || (name.startsWith("-") && place !== "networks[0].name"))
    );
  };

  test.each(Object.entries(inFile))("as %s is refused, with its place in the file", (place, changesOf) => {
    for (const name of inText.filter((one) => !mayBe(place, one))) {
      const parsed = parseAgentConfig(
        JSON.stringify({ networks: [network], ...changesOf(name) }, null, 1),
        "agent.yaml",
      );
      expect(parsed.t === "wrong" ? parsed.problems.join() : parsed.t, name).toMatch(/^agent\.yaml:\d+:\d+: /);
    }
  });
});

/** A few at a time. */
async function inTurns<T, R>(all: readonly T[], work: (one: T, i: number) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  let next = 0;
  const worker = async (): Promise<void> => {
    for (let i = next++; i < all.length; i = next++) results.push(await work(all[i] as T, i));
  };
  await Promise.all([worker(), worker(), worker()]);
  return results;
}
