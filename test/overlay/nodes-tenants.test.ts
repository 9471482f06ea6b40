import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { compileExecutables } from "../conformance/plugin.ts";
import { eventually } from "../support/agent-process.ts";
import { describeWith } from "../support/requires.ts";
import { sendForgedPing } from "./lab/forged-tunnel.ts";
import { Lab } from "./lab/lab.ts";
import type { LabPod } from "./lab/lab-pod.ts";
import { answers, pingsHeard } from "./lab/reach.ts";
import { etcdctl } from "./lab/registry-records.ts";
import { seenBy, TcpServer } from "./lab/tcp.ts";

const system = "kube-system";
/** A pod of each on both nodes. */
const projects = [system, "red", "blue"] as const;

/** An agent makes its documents anew some times a second. */
const soon = { timeout: 30_000, interval: 500 };

type Rule = (from: LabPod, to: LabPod) => boolean;

const sameProject: Rule = (from, to) => from.project === to.project;
const orSystem: Rule = (from, to) => sameProject(from, to) || [from, to].some(({ project }) => project === system);
const everybody: Rule = () => true;
const everybodyBut =
  (project: string): Rule =>
  (from, to) =>
    sameProject(from, to) || ![from, to].some((pod) => pod.project === project);

describeWith("projects on two nodes", ["root", "openvswitch", "nft", "etcd", "etcdctl"], () => {
  let lab: Lab;
  let pods: readonly LabPod[];

  beforeAll(compileExecutables);

  async function start(tenants: "flat" | "multitenant"): Promise<void> {
    lab = await Lab.start({ nodes: ["a", "a"], ovs: { tenants } });
    pods = await Promise.all(lab.nodes.flatMap((node) => projects.map((project) => node.addPod(project, { project }))));
  }

  const pairs = (): (readonly [LabPod, LabPod])[] =>
    pods.flatMap((from) => pods.filter((to) => to !== from).map((to) => [from, to] as const));
  const named = ([from, to]: readonly [LabPod, LabPod]): string =>
    `${from.node.name}/${from.project} -> ${to.node.name}/${to.project}`;

  /** Who gets an answer and should not have one, or the other way round. */
  async function wrongPings(rule: Rule, family: 4 | 6): Promise<string[]> {
    const wrong: string[] = [];
    await Promise.all(
      pairs().map(async ([from, to]) => {
        const should = rule(from, to);
        const does = await answers(from.namespace, to.address(family), { seconds: should ? 5 : 0.5 });
        if (does !== should) wrong.push(`${named([from, to])}: ${does}`);
      }),
    );
    return wrong.sort();
  }

  async function wrongConnections(rule: Rule): Promise<string[]> {
    using servers = new DisposableStack();
    for (const pod of pods) servers.use(new TcpServer(pod.namespace));
    const wrong: string[] = [];
    await Promise.all(
      pairs().map(async ([from, to]) => {
        const should = rule(from, to);
        const seen = await seenBy(from.namespace, to.address(4), { patienceMs: should ? 5_000 : 500 });
        const does = seen !== undefined;
        if (does !== should) wrong.push(`${named([from, to])}: ${does}`);
      }),
    );
    return wrong.sort();
  }

  async function expectRule(rule: Rule): Promise<void> {
    expect(await wrongPings(rule, 4)).toEqual([]);
    expect(await wrongPings(rule, 6)).toEqual([]);
    expect(await wrongConnections(rule)).toEqual([]);
  }

  /** With one pod more, which goes again: what is wrong with it fails no other test. */
  async function expectRuleWith(pod: LabPod, rule: Rule): Promise<void> {
    const others = pods;
    try {
      pods = [...others, pod];
      await expectRule(rule);
    } finally {
      pods = others;
      await pod.remove();
    }
  }

  /** What a person says of projects reaches the pods that run. */
  async function say(words: readonly string[], rule: Rule): Promise<void> {
    const node = lab.node(1);
    await node.pipette("tenants", ...words, "--config", node.home.configFile);
    await eventually(async () => (await wrongPings(rule, 4)).length === 0, `the switches to hear "${words.join(" ")}"`);
    expect(await wrongPings(rule, 6)).toEqual([]);
    expect(await wrongConnections(rule)).toEqual([]);
  }

  describe("kept apart", () => {
    beforeAll(() => start("multitenant"));
    afterAll(() => lab?.[Symbol.asyncDispose]());

    test("pods reach their own project, on their node and on the other, and no other", () => expectRule(sameProject));

    test("a bridge that was deleted while no agent ran has its pods again, each in its project", async () => {
      const node = lab.node(1);
      await node.agent.end("SIGTERM");
      await node.vswitch.vsctl("del-br", "br-int");
      await node.startAgent();
      await eventually(async () => (await wrongPings(sameProject, 4)).length === 0, "the pods to have their ports");
      await expectRule(sameProject);
    });

    test("a pod that passes for the end of a tunnel is heard by nobody, unlike a node", async () => {
      const [from, to] = [pods.at(1), pods.at(-1)] as [LabPod, LabPod];
      const ends = [to.node.addresses[0], `${to.address(4).replace(/\d+$/, "1")}`, from.node.addresses[0]];
      const before = await pingsHeard(to.namespace);
      for (const end of ends) await sendForgedPing(from.namespace, end ?? "", to.address(4));
      // What was sent before has come by now, if it comes at all.
      await sendForgedPing(from.node.namespace, ends[0] ?? "", to.address(4));
      await eventually(async () => (await pingsHeard(to.namespace)) > before, "the ping of the node");
      expect(await pingsHeard(to.namespace)).toBe(before + 1);
    });

    const vnidOf = async (project: string): Promise<number> => {
      const node = lab.node(1);
      const list = await node.pipette("tenants", "list", "--json", "--config", node.home.configFile);
      return JSON.parse(list).tenants[project];
    };
    const put = (project: string, vnid: number): Promise<string> =>
      etcdctl(lab, ["put", `/pipette/v1/vnids/${project}`, String(vnid)]);
    const refusals = async (i: number): Promise<string> => (await lab.node(i).home.status()).refusals.join("\n");
    /** What `pipette why` says of a pod, or of the node. */
    const why = async (...words: readonly string[]): Promise<object> => {
      const { executables, home, namespace } = lab.node(1);
      const command = [`${executables}/pipette`, "why", ...words, "--json", "--socket", home.socket];
      return JSON.parse((await namespace.start(command).ended).stdout);
    };

    test.each(["blue", "all"])(
      "a number that somebody overwrites opens no project to that of %s, and is told of",
      async (to) => {
        const own = await vnidOf("red");
        const other = to === "all" ? 0 : await vnidOf(to);
        await put("red", other);
        for (const i of [1, 2]) {
          await eventually(
            async () => (await refusals(i)).includes(`project "red" stays with VNID ${own}`),
            "the refusal",
          );
          expect(await refusals(i)).toContain(`the registry says ${other}`);
          expect(await refusals(i)).toContain(`"pipette tenants confirm red ${other}"`);
        }
        await expect.poll(() => why(), soon).toMatchObject({ code: "project-unconfirmed" });
        await expectRule(sameProject);
        // A pod that comes now, on a node whose agent has started since, is of its own project only.
        await lab.node(2).agent.end("SIGKILL");
        await lab.node(2).startAgent();
        const late = await lab.node(2).addPod("late", { project: "red" });
        await expectRuleWith(late, sameProject);
        await put("red", own);
        for (const i of [1, 2]) await eventually(async () => (await refusals(i)) === "", "the end of the refusal");
      },
    );

    test("a project that is new gets no pod with a number that is another's, until a person confirms it", async () => {
      const blue = await vnidOf("blue");
      await put("evil", blue);
      const pod = lab.node(1).pod("evil", { project: "evil" });
      const { status, stdout } = await pod.cni("ADD");
      expect([status, stdout]).toEqual([1, expect.stringContaining("has no VNID here: the registry says")]);
      expect(await why("evil/evil")).toMatchObject({
        ...{ result: "cause", code: "project-unconfirmed" },
        evidence: expect.arrayContaining([expect.stringMatching(/ADD.*project "evil" has no VNID here/)]),
        todo: expect.arrayContaining([expect.stringContaining("pipette tenants isolate PROJECT")]),
      });
      const node = lab.node(1);
      await node.pipette("tenants", "isolate", "evil", "--config", node.home.configFile);
      await eventually(async () => (await refusals(1)) === "", "the end of the refusal");
      await pod.add();
      await expectRuleWith(pod, sameProject);
    });

    test("a number that somebody overwrote counts once a person confirms it", async () => {
      const [own, blue] = [await vnidOf("red"), await vnidOf("blue")];
      await put("red", blue);
      await eventually(async () => (await refusals(1)).includes(`stays with VNID ${own}`), "the refusal");
      await say(["confirm", "red", String(blue)], everybodyBut(system));
      await say(["isolate", "red"], sameProject);
    });

    test("a project that becomes global reaches all and is reached by all", () => say(["global", system], orSystem));

    test("projects that are joined reach each other, until they are parted", async () => {
      await say(["join", "red", "blue"], everybody);
      await say(["isolate", "red"], orSystem);
    });

    test("the node reaches all of them, as its kubelet has to", async () => {
      for (const pod of pods)
        for (const address of pod.addresses) expect(await answers(pod.node.namespace, address)).toBe(true);
    });
  });

  describe("flat", () => {
    beforeAll(() => start("flat"));
    afterAll(() => lab?.[Symbol.asyncDispose]());

    test("pods reach every project", () => expectRule(everybody));
  });
});
