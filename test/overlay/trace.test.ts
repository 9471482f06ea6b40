import { symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { endpointAt, servicePort } from "../fakes/service-port.ts";
import type { TerminalRun } from "../fakes/terminal-run.ts";
import { describeWith } from "../support/requires.ts";
import { peer, TraceNode } from "./trace-node.ts";

interface Traced {
  readonly packet: Readonly<Record<string, unknown>>;
  readonly steps: readonly { readonly name: string; readonly flow?: { readonly category: number } }[];
  readonly verdict: { readonly t: string; readonly text: string };
  readonly next?: string;
}

function readJson({ stdout, stderr }: TerminalRun): Traced {
  expect(stderr).toBe("");
  return JSON.parse(stdout) as Traced;
}
const tablesOf = ({ steps }: Traced): readonly string[] => steps.map(({ name }) => name);

describeWith("pipette trace on a real switch with the real pipeline", ["linux", "root", "openvswitch"], () => {
  let node: TraceNode;
  const json = async (...args: readonly string[]): Promise<Traced> => readJson(await node.trace(...args, "--json"));

  beforeAll(async () => {
    node = await TraceNode.start();
  });
  afterAll(() => node?.[Symbol.asyncDispose]());

  describe("with a peer", () => {
    beforeAll(() => node.program({ peers: [peer] }));

    test("the way to a pod of the same node, in words", async () => {
      const { status, stdout, stderr } = await node.trace("web", "shop/db");
      expect([status, stderr]).toEqual([0, ""]);
      expect(stdout).toContain("pod default/web to pod shop/db: ICMP echo request, a connection's first packet");
      expect(stdout).toMatch(/^ 30 {2}Classifier +in_port=p1 \(190\) +from a pod; from this node$/m);
      expect(stdout).toMatch(
        /^180 {2}L2ForwardingCalc +dl_dst=0a:00:0a:0a:01:03 \(200\) +by port p2; to be sent out$/m,
      );
      expect(stdout).toMatch(
        /^220 {2}ConntrackCommit .* connection remembered \(zone 65520\); connection from a pod$/m,
      );
      expect(stdout).toContain("\ndelivered to pod shop/db by port p2\n");
    });

    test("an answer is known, by both families and protocols", async () => {
      for (const args of [
        ["web", "db", "--tcp", "80"],
        ["fd00:1::2", "fd00:1::3"],
        ["fd00:1::2", "db", "--udp", "53"],
      ]) {
        expect((await json(...args)).verdict.text).toBe("delivered to pod shop/db by port p2");
        const reply = await json(...args, "--reply");
        expect(reply.verdict.text).toBe("delivered to pod default/web by port p1");
        expect(tablesOf(reply)).not.toContain("ServiceLB");
      }
      expect((await json("fd00:1::2", "db")).packet["destination"]).toMatchObject({ ip: "fd00:1::3" });
    });

    test("to a pod of another node, where the first answer of Open vSwitch says that it is dropped", async () => {
      const raw = await node.trace("web", "10.10.2.9", "--tcp", "80", "--raw");
      expect(raw.stdout).toContain("Not tunneling to our own address");
      const traced = await json("web", "10.10.2.9", "--tcp", "80");
      expect(traced.verdict.text).toBe("sent through the tunnel (port tun0, key 0) to node 172.30.0.2");
      expect(traced.next).toBe("pipette trace 10.10.1.2 10.10.2.9 --from-tunnel ADDRESS-OF-THIS-NODE --tcp 80");
      expect(traced.steps.find(({ name }) => name === "L3Forwarding")?.flow?.category).toBe(12);
      for (const args of [[], ["--udp", "53"], ["--tcp", "80"]])
        expect((await json("web", "fd00:2::9", ...args)).verdict.t).toBe("tunnel");
    });

    test("nodes are told by the names that the agent knows, and the way on by this node's own address", async () => {
      expect((await json("web", "10.10.2.9")).next).toContain("--from-tunnel ADDRESS-OF-THIS-NODE");
      const own = { name: "node1", addresses: ["172.30.0.1"], subnets: ["10.10.1.0/24"] };
      const known = join(node.vswitch.directory, "nodes.json");
      const nodes = [own, { name: "node2", addresses: ["172.30.0.2"], subnets: ["10.10.2.0/24"] }, { name: 5 }];
      for (const broken of ["", "{", JSON.stringify({ self: 1, nodes: "" })]) {
        writeFileSync(known, broken);
        expect((await json("web", "10.10.2.9")).verdict.text).toMatch(/to node 172\.30\.0\.2$/);
      }
      writeFileSync(known, JSON.stringify({ version: 1, registry: "x", self: own, nodes, tenants: {} }));
      const traced = await json("web", "10.10.2.9", "--udp", "53");
      expect(traced.verdict.text).toBe("sent through the tunnel (port tun0, key 0) to node node2 (172.30.0.2)");
      expect(traced.next).toBe("pipette trace 10.10.1.2 10.10.2.9 --from-tunnel 172.30.0.1 --udp 53");
    });

    test("what comes out of the tunnel, and the answer to it", async () => {
      const came = await json("10.10.2.9", "db", "--from-tunnel", "172.30.0.2");
      expect(came.verdict.text).toBe("delivered to pod shop/db by port p2");
      expect(tablesOf(came)).not.toContain("SpoofGuard");
      const answer = await json("10.10.2.9", "db", "--reply");
      expect(answer.verdict.text).toBe("sent through the tunnel (port tun0, key 0) to node node2 (172.30.0.2)");
      expect(answer.next).toBe("pipette trace 10.10.2.9 10.10.1.3 --from-tunnel 172.30.0.1 --reply");
    });

    test.each([
      ["--as-ip", "10.10.1.99", "from 10.10.1.99 with MAC 0a:00:0a:0a:01:02"],
      ["--as-mac", "0a:00:0a:0a:01:03", "from 10.10.1.2 with MAC 0a:00:0a:0a:01:03"],
    ])("the spoof guard drops what is sent %s %s", async (option, value, words) => {
      const run = await node.trace("web", "db", option, value);
      expect(run.status).toBe(1);
      expect(run.stdout).toContain(
        `dropped in table SpoofGuard, which lets only packets from a port's own address and`,
      );
      expect(run.stdout).toContain(`port p1 may not send ${words}`);
    });

    test("an address that no pod has, and the world outside", async () => {
      const absent = (await json("web", "10.10.1.77")).verdict;
      expect([absent.t, absent.text]).toEqual([
        "dropped",
        expect.stringContaining("no pod of this node has 10.10.1.77"),
      ]);
      expect((await json("web", "224.0.0.251")).verdict.text).toContain("pods send nothing to groups");
      expect((await json("web", "127.0.0.1")).verdict.text).toContain("a loopback address means nothing");
      const forged = (await json("web", "203.0.113.1", "--udp", "6081")).verdict.text;
      expect(forged).toContain("it looks like a packet of the tunnel");
      const outside = (await json("web", "203.0.113.1")).verdict;
      expect(outside).toMatchObject({ t: "out", to: "gateway", port: "gw0", remark: expect.any(String) });
      expect((await json("web", "10.10.1.1")).verdict).toEqual({
        t: "out",
        to: "gateway",
        port: "gw0",
        text: "left to the node itself, by the gateway port gw0",
      });
    });
  });

  test("without its peer's flow a packet is left to the node, and the remark says why", async () => {
    await node.program({});
    const { verdict } = await json("web", "10.10.2.9");
    expect(verdict).toMatchObject({
      t: "out",
      to: "gateway",
      remark: expect.stringContaining("neither a pod of this node nor a known node's subnet has 10.10.2.9"),
    });
  });

  test("a service's endpoint is chosen; one without endpoints drops", async () => {
    const here = [endpointAt("10.10.1.3")];
    await node.program({
      peers: [peer],
      services: [
        servicePort({ key: "default/here", endpoints: here }),
        servicePort({ key: "default/away", port: 81, endpoints: [endpointAt("10.10.2.3")] }),
        servicePort({ key: "default/kept", port: 82, endpoints: here, affinitySeconds: 60 }),
        servicePort({ key: "default/none", port: 83 }),
        servicePort({ key: "default/local", port: 84, cluster: here, external: here }),
      ],
    });
    const run = await node.trace("web", "10.96.0.10", "--tcp", "80");
    expect(run.stdout).toMatch(
      /^110 {2}ServiceLB .*group 1 chooses; bucket \d+ is used; endpoint 10\.10\.1\.3; endpoint's port 8080$/m,
    );
    expect(run.stdout).toMatch(/^120 {2}EndpointDNAT .*destination translated to 10\.10\.1\.3:8080/m);
    expect(run.stdout).toContain("\ndelivered to pod shop/db by port p2\n");
    const away = await json("web", "10.96.0.10", "--tcp", "81");
    expect(away.verdict.text).toBe("sent through the tunnel (port tun0, key 0) to node node2 (172.30.0.2)");
    expect(away.next).toBe("pipette trace 10.10.1.2 10.10.2.3 --from-tunnel 172.30.0.1 --tcp 8080");
    expect((await json("web", "10.96.0.10", "--tcp", "82")).verdict.text).toBe("delivered to pod shop/db by port p2");
    expect((await json("web", "10.96.0.10", "--tcp", "83")).verdict.text).toContain(
      "dropped in table EndpointDNAT, which translates the service's address to the endpoint's: the service at 10.96.0.10 has no endpoint",
    );
    expect((await json("web", "10.96.0.10", "--tcp", "84")).verdict.text).toContain(
      "the service at 10.96.0.10 has no endpoint on this node, and asks for one there",
    );
  });

  test("another project's pod is not reached, on one node and through the tunnel", async () => {
    await node.program({ peers: [peer], vnids: [10, 11] });
    const other = "other project: the sender's has VNID";
    expect((await json("web", "db")).verdict.text).toContain(`dropped in table TenantIsolation`);
    expect((await json("web", "db")).verdict.text).toContain(`${other} 10, the receiver's 11`);
    const away = await json("web", "10.10.2.9");
    expect(away.verdict).toMatchObject({ t: "tunnel", key: 10 });
    expect(away.next).toContain("--tunnel-key 10");
    const came = (key: string) => json("10.10.2.9", "db", "--from-tunnel", "172.30.0.2", "--tunnel-key", key);
    expect((await came("11")).verdict.t).toBe("delivered");
    expect((await came("0")).verdict.t).toBe("delivered");
    expect((await came("12")).verdict.text).toContain(`${other} 12, the receiver's 11`);
  });

  test("with no flows at all the table that drops is told", async () => {
    await node.program({ peers: [peer] });
    await node.vswitch.run("ovs-ofctl", "-O", "OpenFlow15", "del-flows", `unix:${node.vswitch.management("br-int")}`);
    const { verdict } = await json("web", "db");
    expect(verdict).toMatchObject({ t: "dropped", table: "PipelineRootClassifier" });
  });

  test("what cannot be traced is said in a sentence", async () => {
    await node.program({ peers: [peer] });
    const said = async (...args: readonly string[]) => {
      const { status, stdout, stderr } = await node.trace(...args);
      return [status, stdout, stderr.split("\n")[0]];
    };
    expect(await said("wob", "db")).toEqual([
      3,
      "",
      'Cannot trace the packet: this node has no pod "wob", wanted one such as "default/web", "shop/db"; a pod of another node is told by its address',
    ]);
    expect(await said("10.10.2.9", "db")).toEqual([
      1,
      "",
      expect.stringContaining('"10.10.2.9" is no pod of this node'),
    ]);
    expect(await said("web", "db", "--tcp", "1", "--udp", "1")).toEqual([
      1,
      "",
      expect.stringContaining("more than one of --tcp, --udp, --icmp and --protocol"),
    ]);
    expect(await said("web", "db", "--tcp", "0")).toEqual([
      2,
      "",
      expect.stringContaining("wanted a port from 1 to 65535"),
    ]);
    const elsewhere = join(node.vswitch.directory, "bridge.yaml");
    writeFileSync(elsewhere, "dataPath: bridge\nnetworks: [{ name: pods, subnets: [10.10.1.0/24], bridge: br0 }]\n");
    const others = await node.traceBy(elsewhere, node.vswitch.control, "web", "db");
    expect(others.stderr).toContain('is "bridge", wanted "ovs", which has tables');
  });

  test("while ovs-vswitchd is killed and back the command says so, and goes on", { timeout: 60_000 }, async () => {
    // Under the name that ovs-vswitchd gives its socket where nobody names another.
    symlinkSync(node.vswitch.control, join(node.vswitch.directory, "ovs-vswitchd.12.ctl"));
    writeFileSync(join(node.vswitch.directory, "ovs-vswitchd.11.ctl"), "");
    expect((await node.traceBy(node.configuration, undefined, "web", "db")).stdout).toContain("delivered to pod");
    const nobody = await node.traceBy(node.configuration, join(node.vswitch.directory, "none.ctl"), "web", "db");
    expect([nobody.status, nobody.stderr]).toEqual([1, expect.stringContaining("wanted a running ovs-vswitchd")]);
    await node.vswitch.stop("ovs-vswitchd", "SIGKILL");
    const killed = await node.trace("web", "db");
    expect([killed.status, killed.stderr]).toEqual([1, expect.stringContaining("connecting fails with ECONNREFUSED")]);
    await node.vswitch.startSwitch();
    await node.program({ peers: [peer] });
    expect((await json("web", "db")).verdict.t).toBe("delivered");
  });
});
