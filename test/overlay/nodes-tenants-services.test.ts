import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { compileExecutables } from "../conformance/plugin.ts";
import type { NetworkNamespace } from "../support/network-namespace.ts";
import { describeWith } from "../support/requires.ts";
import { scratchDir } from "../support/scratch-dir.ts";
import { endpointPort, type Hiding, type Translation, translate } from "./lab/kube-proxy.ts";
import { Lab } from "./lab/lab.ts";
import type { LabPod } from "./lab/lab-pod.ts";
import { call, DatagramClient, NamedServer } from "./named-server.ts";

/** What the kernel of the first node translates, and what the switch does itself, by endpoint. */
const services = ["red", "red2", "blue", "farRed", "farBlue"] as const;
type Name = (typeof services)[number];
const networks = { kernel: { 4: "10.97.0.", 6: "fd00:97::" }, own: { 4: "10.96.0.", 6: "fd00:96::" } } as const;
const hostPort = 3000;

type Family = 4 | 6;
const families: readonly Family[] = [4, 6];
const addressIn = (network: keyof typeof networks, family: Family, name: Name): string =>
  `${networks[network][family]}${services.indexOf(name) + 10}`;

describeWith("services between projects", ["root", "openvswitch", "nft", "etcd"], () => {
  const stack = new AsyncDisposableStack();
  const file = join(stack.use(scratchDir()).path, "services.yaml");
  let lab: Lab;
  let pods: Record<Name, LabPod>;

  beforeAll(async () => {
    compileExecutables();
    writeFileSync(file, "services: []\n");
    const cidrs = ["10.96.0.0/16", "fd00:96::/112"];
    lab = stack.use(await Lab.start({ nodes: ["a", "a"], ovs: { tenants: "multitenant", services: { file, cidrs } } }));
    const add = (number: number, name: Name, project: string): Promise<LabPod> =>
      lab.node(number).addPod(name, { project });
    const [red, red2, blue, farRed, farBlue] = await Promise.all([
      add(1, "red", "red"),
      add(1, "red2", "red"),
      add(1, "blue", "blue"),
      add(2, "farRed", "red"),
      add(2, "farBlue", "blue"),
    ]);
    pods = { red, red2, blue, farRed, farBlue };
    for (const pod of Object.values(pods)) stack.use(await NamedServer.start(pod.namespace, pod.name, endpointPort));
    // Somebody outside who takes the first node for the way to services.
    const [via4, via6] = lab.node(1).addresses;
    await lab.underlay.namespace.ip(`route add 10.97.0.0/16 via ${via4}`, `route add fd00:97::/112 via ${via6}`);
  });
  afterAll(() => stack.disposeAsync());

  const i = (family: Family): 0 | 1 => (family === 4 ? 0 : 1);

  /** Host ports of the first node's pods, from 3000 on in the order of the services. */
  const portOf = (name: Name): number => hostPort + services.indexOf(name);

  /** The first node's kernel: a service for each pod, and for each a host port on every address of the node. */
  const kernelOf = (hiding: Hiding): Promise<void> => {
    const own = lab.node(1);
    const all = services.flatMap((name) =>
      families.flatMap((family): Translation[] => {
        const endpoint = pods[name].addresses[i(family)] ?? "";
        const published = [own.addresses[i(family)], pods.red.gateways[i(family)]].map((address) => ({
          address: address ?? "",
          port: portOf(name),
          endpoint,
        }));
        return [{ address: addressIn("kernel", family, name), port: 80, endpoint }, ...published];
      }),
    );
    return translate(own.namespace, all, hiding);
  };

  /** Who answers by TCP and by UDP; "nobody" where none does. Both are of one mind. */
  async function who(from: NetworkNamespace, family: Family, address: string, port: number): Promise<string> {
    using client = await DatagramClient.open(from, family);
    const [stream, datagram] = await Promise.all([call(from, address, port, 800), client.ask(address, port, 800)]);
    expect(stream?.name).toBe(datagram?.name);
    return stream?.name ?? "nobody";
  }

  /** Of the services, those that answer, each by who should. */
  async function reached(
    from: NetworkNamespace,
    family: Family,
    way: (name: Name) => readonly [string, number],
    names: readonly Name[] = services,
  ): Promise<readonly Name[]> {
    const answers = await Promise.all(
      names.map(async (name) => [name, await who(from, family, ...way(name))] as const),
    );
    for (const [name, answer] of answers) expect([name, "nobody"]).toContain(answer);
    return answers.flatMap(([name, answer]) => (answer === name ? [name] : []));
  }

  describe.each<Hiding>(["some", "all"])("of the node's kernel, which hides %s", (hiding) => {
    beforeAll(() => kernelOf(hiding));

    describe.each(families)("IPv%i", (family) => {
      const service = (name: Name) => [addressIn("kernel", family, name), 80] as const;

      test("a service leads no pod to another project, on its node or on another", async () => {
        expect(await reached(pods.red.namespace, family, service)).toEqual(["red", "red2", "farRed"]);
        expect(await reached(pods.blue.namespace, family, service)).toEqual(["blue", "farBlue"]);
      });

      test("endpoints see their clients themselves, and itself as the node", async () => {
        const seen = async (name: Name) => (await call(pods.red.namespace, ...service(name)))?.seenAs;
        const [own, gateway] = [pods.red.addresses[i(family)], pods.red.gateways[i(family)]];
        expect([await seen("red2"), await seen("farRed"), await seen("red")]).toEqual([own, own, gateway]);
      });

      test("the node and hosts outside reach services of every project", async () => {
        expect(await reached(lab.node(1).namespace, family, service)).toEqual(services);
        const near: readonly Name[] = ["red", "red2", "blue"];
        expect(await reached(lab.underlay.namespace, family, service, near)).toEqual(near);
      });

      test("a host port is open to all who reach the node; to pods of the node within their project", async () => {
        const near: readonly Name[] = ["red", "red2", "blue"];
        const onNode = (name: Name) => [lab.node(1).addresses[i(family)], portOf(name)] as const;
        expect(await reached(lab.underlay.namespace, family, onNode, near)).toEqual(near);
        expect(await reached(lab.node(2).namespace, family, onNode, near)).toEqual(near);
        expect(await reached(pods.red.namespace, family, onNode)).toEqual(["red", "red2", "farRed"]);
        expect(await reached(pods.blue.namespace, family, onNode)).toEqual(["blue", "farBlue"]);
        // They come as their node.
        expect(await reached(pods.farRed.namespace, family, onNode, near)).toEqual(near);
      });

      test("nor does one at the gateway's address, which pods of other nodes reach under their own", async () => {
        const atGateway = (name: Name) => [pods.red.gateways[i(family)] ?? "", portOf(name)] as const;
        expect(await reached(pods.red.namespace, family, atGateway)).toEqual(["red", "red2", "farRed"]);
        // Whose they are the other node does not know, but that they reach themselves it sees.
        expect(await reached(pods.farRed.namespace, family, atGateway)).toEqual(["farRed"]);
        expect(await reached(pods.farBlue.namespace, family, atGateway)).toEqual(["farBlue"]);
      });
    });
  });

  describe.each(families)("of the switch: IPv%i", (family) => {
    test("a service leads no pod to another project, on its node or on another; all lead the node", async () => {
      const all = services.flatMap((name) =>
        families.flatMap((of) =>
          ["tcp", "udp"].map((protocol) => ({
            name: `default/${name}-${of}-${protocol}`,
            clusterIp: addressIn("own", of, name),
            protocol,
            port: 80,
            endpoints: [{ ip: pods[name].addresses[i(of)], port: endpointPort }],
          })),
        ),
      );
      writeFileSync(file, JSON.stringify({ services: all }));
      const service = (name: Name) => [addressIn("own", family, name), 80] as const;
      const last = (): Promise<string> => who(pods.blue.namespace, family, ...service("farBlue"));
      await expect.poll(last, { timeout: 30_000 }).toBe("farBlue");
      expect(await reached(pods.red.namespace, family, service)).toEqual(["red", "red2", "farRed"]);
      expect(await reached(pods.farBlue.namespace, family, service)).toEqual(["blue", "farBlue"]);
      expect(await reached(lab.node(1).namespace, family, service)).toEqual(services);
    });
  });

  test("the rules come again where somebody takes them away", async () => {
    const { namespace, agent } = lab.node(1);
    await namespace.run("nft flush chain inet pipette-pipette-gw0 projects");
    const rules = (): Promise<string> => namespace.run("nft list chain inet pipette-pipette-gw0 projects");
    await expect.poll(rules, { timeout: 60_000, interval: 500 }).toContain("snat ip prefix");
    expect(agent.stderr).toMatch(/\d of \d+ packet rules stand/);
  });
});
