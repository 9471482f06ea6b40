import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { compileExecutables } from "../conformance/plugin.ts";
import { pathOf, plainObjects } from "../manifests/manifest.ts";
import { Lab } from "../overlay/lab/lab.ts";
import { Relay } from "../overlay/lab/relay.ts";
import { eventually } from "../support/agent-process.ts";
import { NetworkSandbox } from "../support/network-sandbox.ts";
import { describeWith } from "../support/requires.ts";
import { ApiServer } from "./api-server.ts";
import { addNode, shipped } from "./registry-node.ts";
import { agentAccess } from "./service-account.ts";

interface EventObject {
  readonly reason: string;
  readonly type: string;
  readonly message: string;
  readonly count?: number;
  readonly involvedObject: { readonly kind: string; readonly name: string };
}

const needs = ["root", "openvswitch", "nft", "wireguard-go", "tun", "kube-apiserver", "etcd", "openssl"] as const;

describeWith("a node whose pods are not reached since it does not encrypt", needs, () => {
  const stack = new AsyncDisposableStack();
  const directory = mkdtempSync(join(tmpdir(), "pt-ee-"));
  let server: ApiServer;
  let lab: Lab;

  beforeAll(async () => {
    compileExecutables();
    stack.defer(() => rmSync(directory, { recursive: true, force: true }));
    stack.use(await NetworkSandbox.enter("pt-ee-"));
    server = stack.use(await ApiServer.start());
    await shipped(server);
    for (const object of plainObjects("pipette-cluster-state.yaml")) await server.create(pathOf(object), object);
    const access = new Map<string, object>();
    for (const name of ["n1", "n2"]) {
      await addNode(server, name, "192.0.2.1", undefined);
      access.set(name, await agentAccess(server, name, directory));
    }
    const sections = (node: string) => ({ clusterState: access.get(node) });
    lab = stack.use(await Lab.ground({ nodes: ["a", "a"], sections, ovs: { encryption: "wireguard" } }));
    for (const node of lab.nodes) stack.use(new Relay(node.namespace, "127.0.0.1", Number(new URL(server.url).port)));
    lab.node(2).changeOvs({ encryption: "none" });
    await lab.startRegistry();
    await Promise.all(lab.nodes.map((node) => node.startAgent()));
  }, 240_000);
  afterAll(() => stack.disposeAsync());

  const told = async (): Promise<readonly EventObject[]> => {
    const { body } = await server.ask("GET", "/api/v1/namespaces/default/events");
    return ((body as { items?: EventObject[] }).items ?? []).filter(({ reason }) => reason === "PodsNotReached");
  };

  test("is named by an Event of the one that encrypts, once", async () => {
    await eventually(async () => (await told()).length > 0, "an Event");
    const events = await told();
    expect(events).toMatchObject([
      {
        type: "Warning",
        message: expect.stringContaining('nothing goes to the pods of node "n2": it does not encrypt'),
        involvedObject: { kind: "Node", name: "n1" },
      },
    ]);
    // The same is found with every look, every five seconds.
    await Bun.sleep(11_000);
    expect(await told()).toEqual(events);
  });
});
