import { afterAll, beforeAll, expect, test } from "vitest";
import { findHelm } from "../../build/helm.ts";
import { template } from "../../build/manifests.ts";
import { object, objectsIn } from "../manifests/manifest.ts";
import { eventually } from "../support/agent-process.ts";
import { describeWith } from "../support/requires.ts";
import { ApiServer } from "./api-server.ts";

const secrets = "/api/v1/namespaces/kube-system/secrets";
const name = "pipette-ipsec";
const annotation = "checksum/ipsec-secret";

describeWith(
  "the chart, with the secret of IPsec in a cluster",
  ["linux", "helm", "kube-apiserver", "etcd", "openssl"],
  () => {
    let server: ApiServer;

    beforeAll(async () => {
      server = await ApiServer.start();
      await eventually(async () => (await server.ask("GET", secrets)).status === 200, "the API");
    });
    afterAll(async () => server?.[Symbol.asyncDispose]());

    /** The Linux agents' pods, as an upgrade would have them now. */
    const podTemplate = async (...more: readonly string[]) => {
      const settings = ["dataPath=ovs", `ipsec.secret=${name}`, "linux.config.ovs.encryption=ipsec", ...more];
      const words = [
        "--dry-run=server",
        "--kubeconfig",
        server.kubeconfig,
        ...settings.flatMap((each) => ["--set", each]),
      ];
      return object(objectsIn(await template(findHelm() ?? "", words)), "DaemonSet", "pipette-agent")["spec"].template;
    };
    const markOf = async (): Promise<string | undefined> => (await podTemplate()).metadata.annotations[annotation];
    const write = async (psk: string): Promise<void> => {
      const data = { psk: btoa(psk) };
      const { status } = await server.ask("PATCH", `${secrets}/${name}`, { data });
      if (status === 404) await server.create(secrets, { metadata: { name }, data });
    };

    test("an upgrade rolls the agents when the secret has changed, and only then", async () => {
      expect(await markOf()).toBeUndefined();
      await write("one");
      const first = await markOf();
      expect(first).toMatch(/^[0-9a-f]{64}$/);
      await server.ask("PATCH", `${secrets}/${name}`, { metadata: { labels: { owner: "somebody" } } });
      expect(await markOf()).toBe(first);
      await write("another");
      const second = await markOf();
      expect(second).toMatch(/^[0-9a-f]{64}$/);
      expect(second).not.toBe(first);
      await write("one");
      expect(await markOf()).toBe(first);
    });

    test("the agents have it in their environment alone, and no manifest holds it", async () => {
      await write("never-to-be-seen");
      const pod = await podTemplate();
      const agent = pod.spec.containers.find((each: { name: string }) => each.name === "agent");
      expect(agent.env).toContainEqual({
        name: "PIPETTE_IPSEC_PSK",
        valueFrom: { secretKeyRef: { name, key: "psk" } },
      });
      const text = JSON.stringify(pod);
      expect([text.includes("never-to-be-seen"), text.includes(btoa("never-to-be-seen"))]).toEqual([false, false]);
    });
  },
);
