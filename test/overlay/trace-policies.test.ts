import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { proveByTrace } from "../../agent/commands/policy/prove.ts";
import { whyOf } from "../../agent/commands/policy/why.ts";
import { traceCommand } from "../../agent/commands/trace/trace-command.ts";
import { readEvent } from "../../agent/policies/events.ts";
import { PolicySet } from "../../agent/policies/policy-set.ts";
import { RuleStore } from "../../agent/policies/rule-store.ts";
import { textOf } from "../../agent/policies/state-file.ts";
import { parseIp } from "../../shared/net/ip.ts";
import { type Pod, readPod, readPolicy } from "../../shared/policy/mod.ts";
import { compileExecutables } from "../conformance/plugin.ts";
import { computed, policy, type Told, targets } from "../fakes/policy-events.ts";
import { ingress, ports } from "../fakes/policy-world.ts";
import { runAt } from "../fakes/terminal-run.ts";
import { clusterOf } from "../policies/node-policies.ts";
import { eventually } from "../support/eventually.ts";
import { describeWith } from "../support/requires.ts";
import type { LabPod } from "./lab/lab-pod.ts";
import { call, NamedServer } from "./named-server.ts";
import { SingleNode, subnets } from "./single-node.ts";

interface Traced {
  readonly verdict: { readonly t: string; readonly text: string };
  readonly steps: readonly { readonly decided: readonly string[]; readonly flow?: { readonly matchInWords: string } }[];
}

/** Pods of the node's network may ask pod b at TCP 80, and b is closed for the rest. */
const told = (pods: readonly LabPod[]): readonly Told[] => [
  targets("servers", "x/b"),
  policy("web", "servers", [{ blocks: [subnets[0]], ports: ["TCP/80"] }]),
  // By the uids that their runtime says.
  ...pods.map(({ name, containerId }) => computed(`x/${name}`, containerId.slice(0, 12))),
];

const modes = [
  ["encap", { tenants: "networkpolicy" }],
  // The node's kernel routes between pods, so that a trace ends there.
  ["networkPolicyOnly", { mode: "networkPolicyOnly", tenants: "networkpolicy" }],
] as const;

describe.each(modes)("policies as an agent has them in a switch, in mode %s", (mode, ovs) => {
  describeWith("of a real one", ["root", "openvswitch", "nft"], () => body(mode, ovs));
});

function body(mode: (typeof modes)[number][0], ovs: object): void {
  let single: SingleNode;
  let pods: readonly [LabPod, LabPod];
  const servers = new DisposableStack();

  beforeAll(async () => {
    compileExecutables();
    const policies = { controller: "https://127.0.0.1:1", waitMs: 0, log: "refused" };
    single = await SingleNode.ground(ovs, "outer-bridge", { policies });
    const { node } = single;
    pods = [node.pod("a", { project: "x" }), node.pod("b", { project: "x" })];
    // What the controller has said before.
    const [store, set] = [new RuleStore(), new PolicySet()];
    for (const { type, kind, raw } of told(pods)) set.apply(readEvent(type, kind, raw));
    store.replace(set, true);
    mkdirSync(node.home.dataDir, { recursive: true, mode: 0o700 });
    writeFileSync(join(node.home.dataDir, "policies.state"), textOf(store), { mode: 0o600 });
    await node.startAgent();
    for (const pod of pods) await pod.add();
    servers.use(await NamedServer.start(pods[1].namespace, "b", 80));
  });
  afterAll(async () => {
    servers.dispose();
    await single?.[Symbol.asyncDispose]();
  });

  const where = (): readonly string[] => [
    ...["--config", single.node.home.configFile],
    ...["--control", single.node.vswitch.control, "--json"],
  ];
  const trace = async (port: number): Promise<Traced> => {
    const args = ["a", "b", "--tcp", String(port), ...where()];
    const { stdout, stderr } = await runAt("pipette trace", traceCommand, args);
    expect(stderr).toBe("");
    return JSON.parse(stdout) as Traced;
  };

  if (mode === "encap")
    test("a trace names the policy that lets a packet pass, and those that refuse it", async () => {
      const allowed = await trace(80);
      expect(allowed.verdict.text).toMatch(/^delivered to pod x\/b by port /);
      expect(JSON.stringify(allowed.steps)).toMatch(/rule \d+ of NetworkPolicy x\/web lets it be received/);
      const { verdict } = await trace(81);
      expect(verdict.text).toContain("dropped in table IngressMetric");
      expect(verdict.text).toContain("(isolated by x/web)");
    });

  if (mode === "encap")
    test("what policies say is proved by a trace", async () => {
      const known = pods.map((pod): Pod => {
        const podIPs = pod.addresses.map((ip) => ({ ip }));
        const metadata = { namespace: "x", name: pod.name, uid: pod.name, labels: { pod: pod.name } };
        return readPod({ metadata, spec: { nodeName: "n1" }, status: { podIPs } })!;
      });
      const spec = { ...ingress(ports({ port: 80 })), podSelector: { matchLabels: { pod: "b" } } };
      const web = readPolicy({ metadata: { namespace: "x", name: "web", uid: "web" }, spec })!;
      const cluster = clusterOf({ pods: known, policies: [web], namespaces: new Map([["x", {}]]) });
      const [source, destination] = known.map((pod, i) => ({
        name: `x/${pod.name}`,
        endpoint: { t: "pod", pod, ip: parseIp(pods[i]?.address(4) ?? "")! } as const,
      }));
      if (source === undefined || destination === undefined) throw new Error("There are no pods");
      const places = { config: single.node.home.configFile, control: single.node.vswitch.control };
      for (const port of [80, 81]) {
        const traffic = { protocol: "TCP", port } as const;
        const why = whyOf(cluster, [{ source, destination, traffic }], source.name, destination.name);
        expect(why.allowed).toBe(port === 80 ? "all" : "none");
        const proof = await proveByTrace(why, places);
        expect(proof, JSON.stringify(proof)).toMatchObject({ t: "agrees" });
      }
    });

  test("the log of verdicts has what a program meets, with the cause", async () => {
    const to = pods[1].address(4);
    expect(await call(pods[0].namespace, to, 80)).toMatchObject({ name: "b" });
    const file = join(single.node.home.dataDir, "policies.log");
    const line = await eventually(async () => {
      await call(pods[0].namespace, to, 81, 300);
      return existsSync(file) ? readFileSync(file, "utf8").split("\n")[0] : undefined;
    }, "the log");
    expect(line).toContain(`IngressDefaultRule K8sNetworkPolicy <nil> Ingress Drop <nil> x/b ${pods[0].address(4)} `);
    expect(line).toMatch(new RegExp(` ${to} 81 TCP \\d+ <nil> isolated by x/web( \\[\\d+ packets in 1s\\])?$`));
  });
}
