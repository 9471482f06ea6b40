import { afterAll, beforeAll, expect, test } from "vitest";
import { cleanUpBridges } from "../../agent/datapath/bridge/mod.ts";
import { type Pod, readPod, readPolicy } from "../../shared/policy/mod.ts";
import { ingress, pod as named } from "../fakes/policy-world.ts";
import { nodePolicies, type World } from "../policies/node-policies.ts";
import { ownerOf, ProbedPods } from "../policies/probed-pods.ts";
import { NetworkSandbox } from "../support/network-sandbox.ts";
import { random } from "../support/random.ts";
import { describeWith } from "../support/requires.ts";
import { seed } from "../support/seed.ts";
import { bridgeName, loggerInto } from "./bridge-fixture.ts";
import { BridgeNodes } from "./policed-bridges.ts";

const changes = 150;
/** Of the pings that go on meanwhile. */
const pings = 1_500;
const pingEverySeconds = 0.002;

function podOf(name: string, number: number): Pod {
  const pod = readPod({
    metadata: { namespace: "x", name, uid: name, labels: { pod: name } },
    spec: { nodeName: "n1" },
    status: { podIPs: [{ ip: `10.77.0.${number}` }, { ip: `fd77::${number}` }] },
  });
  if (pod === undefined) throw new Error("not a pod");
  return pod;
}

const all = [podOf("a", 10), podOf("b", 11), podOf("c", 12), podOf("d", 13)];

describeWith("policies of a kernel bridge that change", ["linux", "root", "nft"], () => {
  const stack = new AsyncDisposableStack();
  const next = random(seed);
  let sandbox: NetworkSandbox;
  let bridges: BridgeNodes;
  let pods: ProbedPods;

  beforeAll(async () => {
    sandbox = stack.use(await NetworkSandbox.enter("pt-nc-"));
    bridges = stack.use(await BridgeNodes.start(sandbox, ["n1"]));
    pods = stack.use(new ProbedPods(bridges.nodes));
    for (const pod of all) await pods.attach(sandbox, pod);
  });
  afterAll(() => stack.disposeAsync());

  /** b always hears a and never c; how that is said, and what else there is, changes. */
  function drawn(): World {
    const [a, d] = [named("a"), named("d")];
    const sayings = [
      [ingress({ from: [a] })],
      [ingress({ from: [a, d] }), ingress({ from: [d] })],
      [ingress({ from: [{ ipBlock: { cidr: "10.77.0.0/16", except: ["10.77.0.12/32"] } }] })],
      [ingress({ from: [{ ipBlock: { cidr: "10.77.0.10/31", except: [] } }], ports: undefined })],
      [ingress({ from: [d] }), ingress(), ingress({ from: [a] })],
    ];
    const others = [[], [ingress({})], [ingress({ from: [a] })]][next(3)] ?? [];
    const policies = [
      ...(sayings[next(sayings.length)] ?? []).map((spec) => ({ ...spec, podSelector: { matchLabels: { pod: "b" } } })),
      ...others.map((spec) => ({ ...spec, podSelector: { matchLabels: { pod: "d" } } })),
    ].flatMap((spec, i) => {
      const name = `p${i}-${next(2)}`;
      return readPolicy({ metadata: { namespace: "x", name, uid: name }, spec }) ?? [];
    });
    return { pods: all, policies, namespaces: new Map([["x", {}]]) };
  }

  test("no packet that old and new allow is lost, and none that both deny passes, an agent's restart included", async () => {
    await pods.enforce(drawn());
    const ping = (from: string, count: number): Promise<string> =>
      sandbox
        .pod(pods.at(from).netns, `ping -n -q -i ${pingEverySeconds} -c ${count} -W 1 10.77.0.11`)
        .catch((caught: { stdout: string }) => caught.stdout);
    let isOver = false;
    // Unanswered ones are slower.
    const both = Promise.all([ping("x/a", pings), ping("x/c", pings / 4)]).finally(() => {
      isOver = true;
    });
    let { dataPath } = bridges.nodes[0] ?? pods.at("x/a").node;
    let done = 0;
    for (; !isOver; done++) {
      if (done % 20 === 19) {
        dataPath = await bridges.reopen("n1", nodePolicies(drawn(), ownerOf, "n1"));
      }
      await dataPath.policies?.enforce(nodePolicies(drawn(), ownerOf, "n1"));
      await Bun.sleep(next(10));
    }
    const [allowed, denied] = await both;
    expect(done).toBeGreaterThan(changes / 10);
    expect(allowed).toContain(`${pings} packets transmitted, ${pings} received`);
    expect(denied).toContain(`${pings / 4} packets transmitted, 0 received`);
    expect(await dataPath.policies?.differences()).toEqual([]);
  });

  test("an agent that enforces none takes an earlier one's back", async () => {
    await pods.enforce(drawn());
    await bridges.reopen("n1");
    expect(await sandbox.node("nft list ruleset")).not.toMatch(/policies|closed-/);
    expect(await sandbox.ping(pods.at("x/c").netns, "10.77.0.11")).toBe(true);
  });

  test("a clean-up takes all of it back", async () => {
    await pods.enforce(drawn());
    const undone = await cleanUpBridges([{ name: "pods", bridge: bridgeName }], loggerInto([]));
    expect(undone.map(({ what, did }) => `${what}: ${did}`)).toContain(
      `table "inet pipette-policies-${bridgeName}": undone`,
    );
    expect(await sandbox.node("nft list ruleset")).toBe("");
  });
});
