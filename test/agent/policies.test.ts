import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { execa } from "execa";
import { afterAll, beforeAll, expect, test } from "vitest";
import { servedState } from "../../controller/controller.ts";
import { readPod, readPolicy } from "../../shared/policy/mod.ts";
import { ServedPolicies } from "../policies/served-policies.ts";
import { AgentHome, type AgentProcess, bridgeName, eventually, resultOf } from "../support/agent-process.ts";
import { NetworkSandbox } from "../support/network-sandbox.ts";
import { describeWith } from "../support/requires.ts";

const waitMs = 5_000;
const served = { namespaceLabels: () => undefined, policiesIn: () => [] };

/** Listens at the ports that are asked for; says nothing. */
const listener = "for (const port of [80, 81]) Bun.listen({ hostname: '0.0.0.0', port, socket: { data() {} } })";

/** Pairs of pods, of which one lets nobody in. More come by `PIPETTE_STARTS`: five thousand take some ten minutes. */
const floodedPairs = Number(process.env["PIPETTE_STARTS"] ?? 12);
const floodMs = 60_000 + 1_000 * floodedPairs;

/** Sends datagrams to the addresses about the one that it was last told, and to those that pods will get next. */
const flood = `
  // Pods where nobody listens say so.
  const socket = await Bun.udpSocket({ socket: { error() {} } });
  let last = 0;
  const send = async () => {
    for (;;) {
      for (let at = last - 2; at < last + 6; at++)
        try {
          socket.send("x", 9, "10.78." + (at >> 8) + "." + (at & 255));
        } catch {}
      await Bun.sleep(1);
    }
  };
  void send();
  for await (const line of console) last = Number(line);`;

describeWith("an agent with a controller of policies, on a kernel bridge", ["root", "nft"], () => {
  const stack = new AsyncDisposableStack();
  let sandbox: NetworkSandbox;
  let controller: ServedPolicies;
  let home: AgentHome;
  let agent: AgentProcess;
  /** By names of pods of namespace x. */
  const pods = new Map<string, { readonly netns: string; readonly ip: string }>();

  beforeAll(async () => {
    sandbox = stack.use(await NetworkSandbox.enter("pt-ap-"));
    controller = stack.use(await ServedPolicies.start());
    home = stack.use(new AgentHome());
    const token = join(home.directory, "token");
    writeFileSync(token, "node-n1", { mode: 0o600 });
    home.change({
      policies: { controller: controller.url, ca: controller.caFile, token, serverName: "127.0.0.1", waitMs },
    });
    agent = await home.start({ PIPETTE_NODE_NAME: "n1" });
  });
  afterAll(() => stack.disposeAsync());

  function tell(name: string, ip?: string): void {
    const pod = readPod({
      // Of "closed-1" and its like all are of one application.
      metadata: { namespace: "x", name, uid: `uid-${name}`, labels: { app: name.split("-")[0] } },
      spec: { nodeName: "n1" },
      status: { podIPs: ip === undefined ? [] : [{ ip }] },
    });
    if (pod !== undefined) controller.computation.putPod(pod);
    controller.changed();
  }

  /** As the scheduler, the runtime and the kubelet do it. @returns how long the ADD took, in milliseconds */
  async function start(name: string, { isTold = true, listens = true } = {}): Promise<number> {
    if (isTold) tell(name);
    const netns = await sandbox.addPod(name);
    const args = `IgnoreUnknown=1;K8S_POD_NAMESPACE=x;K8S_POD_NAME=${name};K8S_POD_UID=uid-${name}`;
    const beganMs = performance.now();
    const { ips } = resultOf(await home.cmd("cmdAdd", name, { netns, args }));
    const tookMs = performance.now() - beganMs;
    const ip = ips[0]?.address.split("/")[0] ?? "";
    pods.set(name, { netns, ip });
    if (isTold) tell(name, ip);
    if (listens) run(name, listener);
    return tookMs;
  }

  /** A program in the pod, until the end. */
  function run(name: string, script: string): (line: string) => void {
    const command = ["nsenter", `--net=${pods.get(name)?.netns}`, process.execPath, "-e", script];
    const program = Bun.spawn(command, { stdin: "pipe" });
    stack.defer(async () => {
      program.kill();
      await program.exited;
    });
    return (line) => {
      program.stdin.write(`${line}\n`);
      program.stdin.flush();
    };
  }

  /** DEL, and its namespace and its Pod are gone. */
  async function end(name: string): Promise<void> {
    expect((await home.cmd("cmdDel", name)).error).toBeUndefined();
    await sandbox.removePod(pods.get(name)?.netns ?? "");
    pods.delete(name);
    controller.computation.deletePod(`x/${name}`);
    controller.changed();
  }

  /** @param patienceS of what is to be answered: a busy machine takes its time */
  async function connects(from: string, to: string, port: number, patienceS = 1): Promise<boolean> {
    const [source, destination] = [pods.get(from), pods.get(to)];
    const opened = `exec 3<>/dev/tcp/${destination?.ip}/${port}`;
    const { exitCode } = await execa(
      "nsenter",
      [`--net=${source?.netns}`, "timeout", String(patienceS), "bash", "-c", opened],
      {
        reject: false,
      },
    );
    return exitCode === 0;
  }

  test("pods start closed but for what their policies allow, as soon as these are in force", async () => {
    const policy = readPolicy({
      metadata: { namespace: "x", name: "web", uid: "uid-web", generation: 2 },
      spec: {
        podSelector: { matchLabels: { app: "server" } },
        policyTypes: ["Ingress"],
        ingress: [{ from: [{ podSelector: { matchLabels: { app: "client" } } }], ports: [{ port: 80 }] }],
      },
    });
    if (policy !== undefined) controller.computation.putPolicy(policy);
    for (const name of ["server", "client", "other"]) expect(await start(name)).toBeLessThan(waitMs);
    await eventually(() => connects("client", "server", 80), "what the policy allows");
    expect(await Promise.all([connects("client", "server", 81), connects("other", "server", 80)])).toEqual([
      false,
      false,
    ]);
    expect(await connects("server", "other", 81, 10)).toBe(true);
    expect((await home.status()).policies).toMatch(
      /^network policies: 1 with 1 rules; controller last heard \d+ s ago$/,
    );
    // The controller knows of it.
    await eventually(() => controller.state?.reports.nodesHere("uid-web").length === 1, "the report");
  });

  test("without its controller an agent that starts again enforces the same, and isolates what is new", async () => {
    controller.state?.watches.end();
    controller.state = undefined;
    await agent.end();
    agent = await home.start({ PIPETTE_NODE_NAME: "n1" });
    expect(await connects("client", "server", 80, 10)).toBe(true);
    expect(await Promise.all([connects("client", "server", 81), connects("other", "server", 80)])).toEqual([
      false,
      false,
    ]);
    expect(await start("late", { isTold: false })).toBeGreaterThan(waitMs);
    expect(await Promise.all([connects("late", "other", 80), connects("other", "late", 80)])).toEqual([false, false]);
    await agent.logged(({ message }) => message === "a pod starts isolated: its network policies are not known yet");
    const { shortcomings, problems } = await home.status();
    expect(problems).toEqual([]);
    expect(shortcomings.join("\n")).toContain('"late" of "x/late" is isolated');
    expect(shortcomings.join("\n")).toContain("is not followed");
    tell("late", pods.get("late")?.ip);
    controller.state = servedState(controller.computation, served);
    await eventually(() => connects("late", "other", 80), "the pod's opening");
    expect((await home.status()).shortcomings).toEqual([]);
    await agent.logged(({ message }) => message === "a pod that started isolated has its network policies now");
  });

  test(
    "of a flood that waits for pods to start, nothing reaches one that lets nobody in",
    async () => {
      const closed = readPolicy({
        metadata: { namespace: "x", name: "closed", uid: "uid-closed" },
        spec: { podSelector: { matchLabels: { app: "closed" } }, policyTypes: ["Ingress"] },
      });
      if (closed !== undefined) controller.computation.putPolicy(closed);
      await start("flood", { listens: false });
      const lastIs = run("flood", flood);
      /** Datagrams that a pod got, whether anybody listens or not. */
      const got = async (name: string): Promise<number> => {
        const counts = await execa("nsenter", [`--net=${pods.get(name)?.netns}`, "cat", "/proc/net/snmp"]);
        const [, datagrams = "", nowhere = ""] = /^Udp: (\d+) (\d+)/m.exec(counts.stdout) ?? [];
        return Number(datagrams) + Number(nowhere);
      };
      /** Has the next addresses flooded. @returns how long the ADD took, in milliseconds */
      const startFlooded = async (name: string): Promise<number> => {
        const tookMs = await start(name, { listens: false });
        const [high = 0, low = 0] = (pods.get(name)?.ip ?? "").split(".").slice(2).map(Number);
        lastIs(String(high * 256 + low));
        return tookMs;
      };
      await startFlooded("open");
      await eventually(async () => (await got("open")) > 0, "the flood");
      const adds: number[] = [];
      for (let i = 0; i < floodedPairs; i++) {
        const pair = [`closed-${i}`, `open-${i}`] as const;
        for (const name of pair) adds.push(await startFlooded(name));
        await eventually(async () => (await got(pair[1])) > 0, "the flood at the other pod");
        expect([i, await got(pair[0])]).toEqual([i, 0]);
        for (const name of pair) await end(name);
      }
      adds.sort((a, b) => a - b);
      const at = (part: number): string => (adds[Math.floor(part * (adds.length - 1))] ?? 0).toFixed(0);
      if (floodedPairs > 100) console.log(`${adds.length} ADDs: median ${at(0.5)} ms, p99 ${at(0.99)} ms`);
    },
    floodMs,
  );

  test("a change of a policy reaches pods that run, and a DEL leaves nothing", async () => {
    for (const name of ["web", "closed"]) controller.computation.deletePolicy(`x/${name}`);
    controller.changed();
    await eventually(() => connects("other", "server", 81), "the pods without policies");
    for (const name of pods.keys()) expect((await home.cmd("cmdDel", name)).error).toBeUndefined();
    expect(await home.containers()).toEqual([]);
    expect((await home.status()).policies).toContain("0 with 0 rules");
    const ips = [...pods.values()].map(({ ip }) => ip);
    const left = async (): Promise<string[]> => {
      const rules = await sandbox.node(`nft list table inet pipette-policies-${bridgeName}`);
      return ips.filter((ip) => rules.includes(ip));
    };
    await eventually(async () => (await left()).length === 0, "the end of the pods' rules");
  });
});
