import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { bundleOf } from "../../shared/certificates/mod.ts";
import { compileExecutables } from "../conformance/plugin.ts";
import { SteppedClock } from "../faults/node/stepped-clock.ts";
import { pathOf, plainObjects } from "../manifests/manifest.ts";
import { nodeOn } from "../overlay/lab/addresses.ts";
import { Capture } from "../overlay/lab/capture.ts";
import { Lab } from "../overlay/lab/lab.ts";
import type { LabPod } from "../overlay/lab/lab-pod.ts";
import { marker, says } from "../overlay/lab/marked-pings.ts";
import { answers } from "../overlay/lab/reach.ts";
import { Relay } from "../overlay/lab/relay.ts";
import { eventually } from "../support/agent-process.ts";
import { NetworkSandbox } from "../support/network-sandbox.ts";
import { describeWith } from "../support/requires.ts";
import { ApiServer } from "./api-server.ts";
import { ControllerProcess, installController } from "./controller-process.ts";
import { addNode } from "./registry-node.ts";
import { agentAccess } from "./service-account.ts";

const minuteMs = 60_000;

interface SigningRequest {
  readonly metadata: { readonly name: string };
  readonly spec: { readonly username: string };
  readonly status: { readonly certificate?: string; readonly conditions?: readonly { readonly reason: string }[] };
}

/** All of it at once: API server, controller, agents, ovs-monitor-ipsec and strongSwan. */
describeWith(
  "IPsec between two nodes of a cluster, with certificates of its own",
  [
    ...(["root", "openvswitch", "nft", "tun", "gcc", "strongswan", "kernel-libipsec", "ovs-monitor-ipsec"] as const),
    ...(["kube-apiserver", "etcd", "openssl"] as const),
  ],
  () => {
    const stack = new AsyncDisposableStack();
    const names = ["n1", "n2"] as const;
    let server: ApiServer;
    let lab: Lab;
    let near: LabPod;
    let far: LabPod;
    let capture: Capture;
    /** Of the first node's agent. */
    let clock: SteppedClock;

    beforeAll(async () => {
      compileExecutables();
      const directory = mkdtempSync(join(tmpdir(), "pt-in-"));
      stack.defer(() => rmSync(directory, { recursive: true, force: true }));
      stack.use(await NetworkSandbox.enter("pt-in-"));
      server = stack.use(await ApiServer.start());
      await installController(server);
      for (const object of plainObjects("pipette-ipsec-certificates.yaml")) await server.create(pathOf(object), object);
      const access = new Map<string, object>();
      for (const [index, name] of names.entries()) {
        await addNode(server, name, nodeOn("a", index + 1)[0], `10.10.${index + 1}.0/24`);
        access.set(name, await agentAccess(server, name, directory));
      }
      const certificates = (node: string) => ({ from: "cluster", lifetimeHours: 1, ...access.get(node) });
      const ovs = { encryption: "ipsec", clusterSubnets: ["10.10.0.0/16"] } as const;
      lab = stack.use(
        await Lab.ground({
          ...{ nodes: ["a", "a"], esp: "userspace", ovs },
          registry: (node) => ({ type: "kubernetes", ...access.get(node) }),
        }),
      );
      clock = await SteppedClock.make(lab.directory);
      lab.node(1).variables = clock.env;
      for (const node of lab.nodes) {
        node.changeOvs({ ipsec: { esp: "userspace", certificates: certificates(node.name) } });
        stack.use(new Relay(node.namespace, "127.0.0.1", Number(new URL(server.url).port)));
      }
      await Promise.all(lab.nodes.map((node) => node.startAgent()));
      [near, far] = (await Promise.all(lab.nodes.map((node) => node.addPod("web")))) as [LabPod, LabPod];
      capture = stack.use(await Capture.start(lab.underlay, [1, 2]));
    }, 240_000);
    afterAll(() => stack.disposeAsync());

    const requestsOf = async (node: string): Promise<readonly SigningRequest[]> => {
      const { body } = await server.ask("GET", "/apis/certificates.k8s.io/v1/certificatesigningrequests");
      const all = (body as { items?: readonly SigningRequest[] }).items ?? [];
      return all.filter(({ metadata }) => metadata.name.startsWith(`pipette-ipsec-${node}-`));
    };
    const reached = async (): Promise<void> => {
      await eventually(() => answers(near.namespace, far.address(4), { seconds: 1 }), "an answer of the other", 60_000);
      await eventually(() => answers(far.namespace, near.address(4), { seconds: 1 }), "an answer of this one", 60_000);
    };
    const expectNothingClear = (): void => {
      expect(capture.having(marker)).toBe(0);
      expect([...capture.kinds().keys()].filter((kind) => !["esp", "ike", "other"].includes(kind))).toEqual([]);
    };

    test("without a controller nothing goes, and the status says what is missing", async () => {
      for (const node of lab.nodes)
        await eventually(async () => {
          const is = (await node.home.status()).shortcomings.join("\n");
          return /nothing goes to other nodes' pods: the node has no certificate for IPsec: .*pipette-ipsec-ca/.test(
            is,
          );
        }, "the reason");
      expect(await says(near, far.address(4))).toBe(false);
      expectNothingClear();
    });

    test("the controller signs what both ask for; what their pods say is encrypted, and is nowhere else", async () => {
      stack.use(await ControllerProcess.start(server, ["--sign-ipsec"]));
      await reached();
      for (const name of names) {
        const [request, ...more] = await requestsOf(name);
        expect([request?.status.conditions?.map(({ reason }) => reason), more]).toEqual([["AgentOfNode"], []]);
        expect(request?.spec.username).toBe("system:serviceaccount:kube-system:pipette-agent");
      }
      capture.clear();
      expect(await says(near, far.address(4), 6)).toBe(true);
      expect(await says(far, near.address(4), 6)).toBe(true);
      expect(capture.kinds().get("esp")).toBeGreaterThanOrEqual(24);
      expectNothingClear();
      for (const node of lab.nodes) {
        expect(await node.ipsec.run("ipsec", "statusall")).toMatch(/uses public key authentication/);
        expect(node.ipsec.log).toMatch(/authentication of 'n[12]' with RSA.* successful/);
      }
    });

    test("one that is about to end is followed by another, by which the nodes agree on keys anew", async () => {
      const node = lab.node(1);
      const issued = async (): Promise<readonly string[]> =>
        (await requestsOf(node.name)).flatMap(({ status }) => {
          const [own] = bundleOf(atob(status.certificate ?? ""));
          return own === undefined ? [] : [own.certificate.serialNumber.toLowerCase()];
        });
      const believed = (): number =>
        lab.node(2).ipsec.log.match(/authentication of 'n1' with RSA.* successful/g)?.length ?? 0;
      const [before] = await issued();
      const times = believed();
      // Of an hour 70 to 90 % are over. Its next agent looks at once, and would else within a minute.
      await node.agent.end();
      await clock.step(56 * minuteMs);
      await node.startAgent();
      const next = await eventually(async () => (await issued()).find((serial) => serial !== before), "another one");
      const shown = next.replaceAll(/(..)(?=.)/g, "$1:");
      await eventually(
        async () => (await node.ipsec.run("ipsec", "listcerts")).includes(shown),
        "it in strongSwan",
        60_000,
      );
      await clock.step(-56 * minuteMs);
      await reached();
      await eventually(() => believed() > times, "the other node to be shown it");
      expect(await says(near, far.address(4))).toBe(true);
      expect((await requestsOf("n2")).length).toBe(1);
      expectNothingClear();
    });
  },
);
