import { afterAll, beforeAll, expect, test } from "vitest";
import { datagram } from "../overlay/forbidden-frames.ts";
import { seenBy, TcpServer, tcpPort } from "../overlay/lab/tcp.ts";
import { RawLink } from "../support/frames/raw-link.ts";
import { addHostPort } from "../support/host-port.ts";
import { NetworkNamespace } from "../support/network-namespace.ts";
import { NetworkSandbox } from "../support/network-sandbox.ts";
import { describeWith } from "../support/requires.ts";
import { UdpEar } from "../support/udp-ear.ts";
import { bridgeName, openDataPath, requestFor } from "./bridge-fixture.ts";

describeWith("what the node serves to itself alone, beside pods on a kernel bridge", ["root", "nft"], () => {
  const open = new AsyncDisposableStack();
  let node: NetworkNamespace;
  let inside: NetworkNamespace;

  beforeAll(async () => {
    const sandbox = open.use(await NetworkSandbox.enter("pt-lo-"));
    node = open.use(NetworkNamespace.current());
    const dataPath = open.use(openDataPath({ hairpin: true }));
    await dataPath.start();
    const pod = await sandbox.addPod();
    inside = open.use(NetworkNamespace.at(pod));
    await dataPath.attach(requestFor("a", pod, 10));
    await addHostPort(node, { netns: pod, address: "10.77.0.10/24", hostPort: 8080, containerPort: tcpPort });
  });
  afterAll(() => open.disposeAsync());

  test("portmap has 127.0.0.1 routed at the bridge, and no pod gets there", async () => {
    expect((await node.run(`sysctl -n net.ipv4.conf.${bridgeName}.route_localnet`)).trim()).toBe("1");
    const [{ address: own }] = JSON.parse(await inside.run("ip -j link show dev eth0"));
    const [{ address: bridge }] = JSON.parse(await node.run(`ip -j link show dev ${bridgeName}`));
    using link = await RawLink.open(inside, "eth0");
    using ear = await UdpEar.open(node, "127.0.0.1", 5353);
    using ear6 = await UdpEar.open(node, "::1", 5353);
    using all = await UdpEar.open(node, "10.77.0.1", 5353);
    const send = (from: string, to: string): void =>
      link.send(datagram({ from: own, to: bridge }, { from, to }, [40_000, 5353], [1]));
    send("10.77.0.10", "127.0.0.1");
    send("fd77::10", "::1");
    send("127.0.0.1", "10.77.0.1");
    // What comes last has been heard when all else would have been.
    send("10.77.0.10", "10.77.0.1");
    await expect.poll(() => all.heard).toBeGreaterThan(0);
    expect([ear.heard, ear6.heard, all.heard]).toEqual([0, 0, 1]);
  });

  test("the node itself reaches the pod's host port by 127.0.0.1", async () => {
    using _server = new TcpServer(inside);
    expect(await seenBy(node, "127.0.0.1", { port: 8080 })).toBe("10.77.0.1");
  });
});
