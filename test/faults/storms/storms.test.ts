import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { debianPlugins } from "../../conformance/plugin.ts";
import { describeWith, whyNot } from "../../support/requires.ts";
import { seed } from "../../support/seed.ts";
import { BridgeNode } from "../node/bridge-node.ts";
import { agentDown } from "./agent-down.ts";
import { churn } from "./churn.ts";
import { crossing } from "./crossing.ts";
import { again, crowd } from "./crowd.ts";
import { exactly } from "./exact-pool.ts";
import { peerOf } from "./peer.ts";
import type { StormFigures } from "./storm.ts";
import { stormLines, stormTable } from "./storm-report.ts";

const addresses = 60;
/** With all addresses taken `pipette doctor` rightly says that no new pod gets one. */
const pods = addresses - 1;

/** Under five minutes on a machine with very much else to do. */
const patienceMs = 300_000;

describeWith("storms on a node with a kernel bridge and hardly more addresses than pods", ["root", "nft"], () => {
  let node: BridgeNode;

  vi.setConfig({ testTimeout: patienceMs });
  beforeAll(async () => {
    node = await BridgeNode.start(exactly(addresses));
  });
  afterAll(() => node?.[Symbol.asyncDispose]());

  const expectCalm = ({ wrong, verbs }: StormFigures, calls: Readonly<Record<string, number>>): void => {
    expect(wrong).toEqual([]);
    for (const [verb, n] of Object.entries(calls))
      expect([verb, verbs.find((row) => row.verb === verb)?.n]).toEqual([verb, n]);
    for (const { max, deadline, verb } of verbs) expect(max, verb).toBeLessThan(deadline);
  };

  test("all pods at once, and all away at once", async () => {
    expectCalm(await crowd({ name: "crowd", node, pods }), { ADD: pods, DEL: pods });
  });

  test("ADD and CHECK of all pods again at once", async () => {
    const figures = await again({ name: "again", node, pods });
    expectCalm(figures, { ADD: 2 * pods, CHECK: pods });
  });

  test("many pods in turn, each of which takes the address of one that has just gone", async () => {
    const all = 3 * addresses;
    expectCalm(await churn({ name: "churn", node, pods: all }, addresses), { ADD: all, DEL: all });
  });

  test("all pods are deleted while the agent is down", async () => {
    expectCalm(await agentDown({ name: "agent down", node, pods }, 1_000), { DEL: 2 * pods });
  });

  test(`ADD and DEL of one sandbox cross each other (PIPETTE_SEED=${seed})`, async () => {
    expectCalm(await crossing({ name: "crossing", node, pods: 40 }, seed), {});
  });

  test("the report has a line for every verb of every storm, and what was wrong", async (context) => {
    const reason = whyNot("cni-plugins");
    if (reason !== undefined) context.skip(reason);
    await using peer = peerOf(node, debianPlugins, addresses);
    const theirs = await crowd({ name: "crowd", node: peer, of: "bridge + host-local", pods: 8 }, false);
    const all = [theirs, { ...theirs, of: "pipette", wrong: ["a pod was lost"] }];
    const lines = stormTable(all).split("\n");
    expect(lines.map((line) => line.split(/ {2,}/).slice(0, 4))).toMatchObject([
      ["storm", "pods", "s", "verb"],
      ["crowd", "bridge + host-local", "8", expect.any(String)],
      ["", expect.stringMatching(/^DEL/), expect.any(String), expect.any(String)],
      ["crowd", "pipette", "8", expect.any(String)],
      ["", expect.stringMatching(/^DEL/), expect.any(String), expect.any(String)],
      ["crowd, pipette: a pod was lost"],
    ]);
    expect(JSON.parse(stormLines(all, { pipette: "x" }).split("\n")[1] ?? "")).toMatchObject({
      storm: "crowd",
      wrong: ["a pod was lost"],
      machine: { cores: expect.any(Number) },
      versions: { pipette: "x" },
    });
    expect(theirs.wrong).toEqual([]);
  });
});
