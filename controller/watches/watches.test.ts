import { describe, expect, test, vi } from "vitest";
import type { WatchOut } from "../../shared/https/mod.ts";
import { type NetworkPolicy, type Pod, readPod, readPolicy } from "../../shared/policy/mod.ts";
import { decodeObject, staleAnnotation } from "../../shared/proto/control-plane-messages.ts";
import { WireView } from "../../test/fakes/watching-node.ts";
import { PolicyComputation } from "../policy/mod.ts";
import { Watches } from "./watches.ts";

const pod = (name: string, node: string, labels: object, ip?: string): Pod =>
  readPod({
    metadata: { namespace: "x", name, uid: `uid-${name}`, labels },
    spec: { nodeName: node },
    status: { podIPs: ip === undefined ? [] : [{ ip }] },
  }) as Pod;

const policy = (name: string, target: object, peer: object): NetworkPolicy =>
  readPolicy({
    metadata: { namespace: "x", name, uid: `uid-${name}` },
    spec: {
      podSelector: { matchLabels: target },
      policyTypes: ["Ingress"],
      ingress: [{ from: [{ podSelector: { matchLabels: peer } }] }],
    },
  }) as NetworkPolicy;

/** A client that reads, or does not. */
class Client implements WatchOut {
  readonly written: Uint8Array[] = [];
  readonly view = new WireView();
  takes = true;
  state: "open" | "ended" | "destroyed" = "open";

  write(bytes: Uint8Array): boolean {
    this.written.push(bytes);
    this.view.read(bytes);
    return this.takes;
  }
  end(): void {
    this.state = "ended";
  }
  destroy(): void {
    this.state = "destroyed";
  }
  get bytes(): number {
    return this.written.reduce((sum, { length }) => sum + length, 0);
  }
}

const ordered = { resource: undefined, encoding: "protobuf" } as const;

function world() {
  const computation = new PolicyComputation();
  computation.putPolicy(policy("p", { app: "db" }, { app: "web" }));
  for (const node of ["n1", "n2"]) computation.putPod(pod(`db-${node}`, node, { app: "db" }));
  const watches = new Watches(computation, { bounds: { waitingBytes: 100_000, stallMs: 30_000 } });
  const open = (node: string) => {
    const client = new Client();
    return { client, watch: watches.open({ node, ...ordered }, client) };
  };
  return { computation, watches, open };
}

/** A change that both nodes hear of, of about so many bytes. */
function grow(computation: PolicyComputation, bytes: number, round: number): void {
  for (let i = 0; i < bytes / 100; i++)
    computation.putPod(pod(`w-${round}-${i}`, "n3", { app: "web" }, `10.${round}.${i >> 8}.${i & 255}`));
}

describe("who follows a node", () => {
  test("has its state, one bookmark, and the rest in the order in which nothing opens", () => {
    const { computation, watches, open } = world();
    const { client } = open("n1");
    expect([client.view.policies.size, client.view.pods.size, client.view.bookmark]).toEqual([1, 1, {}]);
    // One step replaces the policy by another one, with other groups, and brings a pod.
    computation.deletePolicy("x/p");
    computation.putPolicy(policy("q", { app: "db" }, { app: "cache" }));
    computation.putPod(pod("new", "n1", { app: "none" }));
    const events: string[] = [];
    vi.spyOn(client.view, "apply").mockImplementation((type, object) => {
      events.push(
        `${type} ${/(ComputedPod|NetworkPolicy|A\w+Group(Patch)?)/.exec(Buffer.from(object).toString("latin1"))?.[1]}`,
      );
    });
    watches.publish();
    expect(events).toEqual([
      "ADDED AddressGroup",
      "ADDED NetworkPolicy",
      "DELETED AddressGroup",
      "DELETED NetworkPolicy",
      "ADDED ComputedPod",
    ]);
  });

  test("a pod that is made anew under its name gets a mark of its own", () => {
    const { computation, watches, open } = world();
    const { client } = open("n1");
    computation.putPod({ ...pod("db-n1", "n1", { app: "db" }), uid: "another" });
    watches.publish();
    expect(client.view.pods.get("x/db-n1")).toBe("another");
    // Nothing that its agent waits for.
    computation.putPod({ ...pod("db-n1", "n1", { app: "db", more: "labels" }), uid: "another" });
    const { events } = client.view;
    watches.publish();
    expect(client.view.events).toBe(events);
  });

  test("one event is encoded once for all who hear it, and those whom it does not concern hear nothing", () => {
    const { computation, watches, open } = world();
    const [one, other, stranger] = [open("n1"), open("n2"), open("n3")];
    const before = stranger.client.written.length;
    computation.putPod(pod("w", "n3", { app: "web" }, "10.0.0.1"));
    watches.publish();
    // The very same bytes.
    expect(one.client.written.at(-1)).toBe(other.client.written.at(-1));
    expect(stranger.client.written.slice(before)).toHaveLength(1);
    expect(stranger.client.view.pods.has("x/w")).toBe(true);
    expect(stranger.client.view.addressGroups.size).toBe(0);
  });

  test("what comes in the same turn of the loop is published together", async () => {
    const { computation, watches, open } = world();
    const { client } = open("n1");
    const before = client.written.length;
    for (let i = 0; i < 20; i++) {
      computation.putPod(pod(`w-${i}`, "n3", { app: "web" }, `10.0.0.${i}`));
      watches.changed();
    }
    expect(client.written.length).toBe(before);
    await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
    expect(client.written.length).toBe(before + 1);
    expect([...client.view.addressGroups.values()][0]?.size).toBe(20);
  });

  test("one who takes nothing is cut off at the bound, and the others lose nothing", () => {
    const { computation, watches, open } = world();
    const [slow, fast] = [open("n1").client, open("n2").client];
    slow.takes = false;
    for (let round = 0; round < 24; round++) {
      grow(computation, 20_000, round);
      watches.publish();
    }
    expect([slow.state, fast.state, watches.count]).toEqual(["destroyed", "open", 1]);
    expect([...fast.view.addressGroups.values()][0]?.size).toBe(24 * 200);
    // Nothing more than what it had not refused was ever handed out.
    expect(slow.bytes).toBeLessThan(20_000);
  });

  test("an initial set may be of any size, and one who takes nothing of it is cut off after a while", () => {
    vi.useFakeTimers();
    try {
      const { computation, watches, open } = world();
      grow(computation, 400_000, 1);
      watches.publish();
      const reading = open("n1");
      expect(reading.client.view.bookmark).toEqual({});
      const silent = new Client();
      silent.takes = false;
      watches.open({ node: "n2", ...ordered }, silent);
      vi.advanceTimersByTime(29_000);
      expect(silent.state).toBe("open");
      vi.advanceTimersByTime(2_000);
      expect([silent.state, reading.client.state]).toEqual(["destroyed", "open"]);
    } finally {
      vi.useRealTimers();
    }
  });

  test("one who goes on reading after a pause has missed nothing", () => {
    const { computation, watches, open } = world();
    const { client, watch } = open("n1");
    client.takes = false;
    for (let round = 0; round < 5; round++) {
      grow(computation, 10_000, round);
      watches.publish();
    }
    expect([...client.view.addressGroups.values()][0]?.size).toBeLessThan(500);
    client.takes = true;
    watch.drained();
    expect([...client.view.addressGroups.values()][0]?.size).toBe(500);
  });

  test.each([
    ["egressgroups", "EgressGroup"],
    ["supportbundlecollections", "SupportBundleCollection"],
  ] as const)("%s, of which there are none, are told to be none", (resource, kind) => {
    const { computation, watches } = world();
    const [json, protobuf] = [new Client(), new Client()];
    const none = { apiVersion: "controlplane.antrea.io/v1beta2", kind, metadata: expect.anything() };
    // What is no protobuf the view does not read.
    json.write = (bytes) => json.written.push(bytes) > 0;
    watches.open({ node: "n1", resource, encoding: "json" }, json);
    protobuf.view.apply = (type, object) => {
      expect([type, decodeObject(object).kind]).toEqual(["BOOKMARK", kind]);
      protobuf.view.events++;
    };
    watches.open({ node: "n1", resource, encoding: "protobuf" }, protobuf);
    computation.putPod(pod("web-0", "n1", { app: "web" }));
    watches.publish();
    expect(json.written.map((bytes) => JSON.parse(new TextDecoder().decode(bytes)))).toEqual([
      { type: "BOOKMARK", object: none },
    ]);
    expect(protobuf.view.events).toBe(1);
  });

  test("what an earlier process knew is said to be old, and ends when it is replaced", () => {
    const { computation } = world();
    const watches = new Watches(computation, { isStale: true });
    const client = new Client();
    watches.open({ node: "n1", ...ordered }, client);
    expect(client.view.bookmark).toEqual({ [staleAnnotation]: "true" });
    watches.end();
    expect([client.state, watches.count]).toEqual(["ended", 0]);
  });
});
