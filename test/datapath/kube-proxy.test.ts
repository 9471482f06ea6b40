import { expect, test } from "vitest";
import { isKubeProxyProblem, kubeProxyBeside } from "../../agent/datapath/linux/kube-proxy.ts";
import { Kernel } from "../../agent/protocols/netlink/mod.ts";
import { NetworkNamespace } from "../support/network-namespace.ts";
import { describeWith } from "../support/requires.ts";

describeWith("a kube-proxy beside", ["linux", "root", "nft"], () => {
  test.each([
    ["none", undefined, undefined],
    [
      "of iptables",
      ["nft -f -", "add table ip nat\nadd chain ip nat KUBE-SERVICES\n"],
      '"KUBE-SERVICES" of the table "ip nat"',
    ],
    ["of ip6tables", ["nft -f -", "add table ip6 nat\nadd chain ip6 nat KUBE-SERVICES\n"], 'of the table "ip6 nat"'],
    [
      "of nftables",
      ["nft -f -", "add table ip kube-proxy\nadd chain ip kube-proxy services\n"],
      '"services" of the table "ip kube-proxy"',
    ],
    ["of IPVS", ["ip link add kube-ipvs0 type veth peer name other", ""], '"kube-ipvs0"'],
    [
      "whose chains are others'",
      ["nft -f -", "add table inet kube-proxy\nadd chain inet kube-proxy services\n"],
      undefined,
    ],
  ] as const)("%s", async (_which, left, told) => {
    using namespace = NetworkNamespace.create();
    if (left !== undefined) await namespace.run(left[0], left[1]);
    const found = inside(namespace);
    expect(found).toEqual(told === undefined ? [] : [expect.stringContaining(told)]);
    // The doctor knows it by its sentence.
    expect(found.every(isKubeProxyProblem)).toBe(true);
  });

  test("whose rules cannot be seen, by its health port", () => {
    using namespace = NetworkNamespace.create();
    const listener = namespace.within(() =>
      Bun.listen({ hostname: "::", port: 10_256, socket: { data: () => undefined } }),
    );
    expect(inside(namespace)).toEqual([expect.stringContaining("listens on port 10256")]);
    listener.stop(true);
    expect(inside(namespace)).toEqual([]);
  });
});

const inside = (namespace: NetworkNamespace): readonly string[] =>
  namespace.within(() => {
    using kernel = new Kernel();
    using filters = kernel.openPacketFilterSocket();
    using links = kernel.openSocket();
    return kubeProxyBeside(filters, links);
  });
