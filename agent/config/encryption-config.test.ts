import { expect, test } from "vitest";
import { parseAgentConfig } from "./parse-agent-config.ts";

const etcd = "nodes: { name: n1, registry: { type: etcd, endpoints: ['http://127.0.0.1:2379'] } }\n";
const file = (ovs: string, nodes = etcd): string =>
  `dataPath: ovs\nnetworks:\n  - { name: pods, bridge: br-int }\novs: ${ovs}\n${nodes}`;
const problems = (ovs: string, nodes?: string): readonly string[] => {
  const parsed = parseAgentConfig(file(ovs, nodes), "agent.yaml");
  return parsed.t === "ok" ? [] : parsed.problems;
};

test("WireGuard is taken with all of its defaults", () => {
  const parsed = parseAgentConfig(file("{ encryption: wireguard }"), "agent.yaml");
  if (parsed.t !== "ok") throw new Error(parsed.problems.join());
  expect(parsed.config.ovs).toMatchObject({
    encryption: "wireguard",
    wireguard: { port: 51_820, device: "pipette-wg0" },
  });
});

test("certificates of the cluster are taken with all of their defaults", () => {
  const parsed = parseAgentConfig(
    file("{ encryption: ipsec, ipsec: { certificates: { from: cluster } } }"),
    "agent.yaml",
  );
  if (parsed.t !== "ok") throw new Error(parsed.problems.join());
  expect(parsed.config.ovs?.ipsec.certificates).toEqual({
    ...{ from: "cluster", namespace: "kube-system", lifetimeHours: 2160, trustDirectory: "/etc/ipsec.d/cacerts" },
  });
});

test("IPsec is taken with all of its defaults, and with projects apart, whose numbers the tunnel carries", () => {
  const parsed = parseAgentConfig(file("{ encryption: ipsec, tenants: multitenant, tunnelPort: 6081 }"), "agent.yaml");
  if (parsed.t !== "ok") throw new Error(parsed.problems.join());
  expect(parsed.config.ovs?.ipsec).toEqual({ esp: "kernel", forceUdp: false, charon: "/run/charon.enfy" });
});

test("nothing is encrypted by default", () => {
  const parsed = parseAgentConfig(file("{}"), "agent.yaml");
  expect(parsed.t === "ok" && parsed.config.ovs?.encryption).toBe("none");
});

const kubernetes = "nodes: { name: n1, registry: { type: kubernetes } }\n";

test.each([
  ["{ encryption: wireguard, mode: noEncap }", etcd, /"wireguard" with mode "noEncap", wanted mode "encap"/],
  ["{ encryption: wireguard, mode: hybrid }", etcd, /"wireguard" with mode "hybrid"/],
  ["{ encryption: wireguard, tenants: multitenant }", etcd, /with tenants "multitenant"/],
  ["{ encryption: wireguard }", kubernetes, /without "clusterSubnets", wanted them/],
  ["{ encryption: wireguard, wireguard: { device: pipette-gw0 } }", etcd, /"pipette-gw0" for the second time/],
  [
    "{ encryption: ipsec, ipsec: { pskFile: /psk, certificates: { from: cluster } } }",
    etcd,
    /with "pskFile" and "certificates", wanted one of them/,
  ],
  ["{ encryption: ipsec, ipsec: { certificates: { from: files, certificate: /c } } }", etcd, /privateKey/],
  ["{ encryption: plain }", etcd, /wanted one of "none"/],
  ["{ encryption: ipsec, mode: noEncap }", etcd, /"ipsec" with mode "noEncap"/],
  ["{ encryption: ipsec, tunnel: stt }", etcd, /"stt" with encryption "ipsec", wanted "geneve", "vxlan" or "gre"/],
  ["{ encryption: ipsec, tunnelPort: 6082 }", etcd, /6082 with encryption "ipsec", wanted 6081: what is sent/],
  ["{ encryption: ipsec, tunnel: vxlan, tunnelPort: 6081 }", etcd, /6081 with encryption "ipsec", wanted 4789/],
  ["{ encryption: ipsec, tunnel: gre, tunnelPort: 6081 }", etcd, /wanted none: what is sent/],
  ["{ encryption: ipsec }", kubernetes, /without "clusterSubnets", wanted them/],
  [
    "{ encryption: wireguard, clusterSubnets: [10.128.0.0/14], wireguard: { rotateHours: 24 } }",
    "nodes: { name: n1, registry: { type: static, file: /f } }\n",
    /"wireguard" with "wireguard.rotateHours" and a file of nodes/,
  ],
])("what could not be kept from leaving in clear is refused: %s", (ovs, nodes, wrong) => {
  expect(problems(ovs, nodes).join("\n")).toMatch(wrong);
});

test("with the networks of all pods any registry will do", () => {
  expect(problems("{ encryption: wireguard, clusterSubnets: [10.128.0.0/14] }", kubernetes)).toEqual([]);
});

test("a kernel bridge, which sends in clear, refuses what would be taken for encryption, and nothing else of the section", () => {
  const written = (encryption: string): readonly string[] => {
    const text = file(`{ encryption: ${encryption}, mode: noEncap }`).replace("dataPath: ovs", "dataPath: bridge");
    const parsed = parseAgentConfig(text, "agent.yaml");
    return parsed.t === "ok" ? [] : parsed.problems;
  };
  expect(written("wireguard").join("\n")).toContain('"wireguard" with dataPath "bridge", wanted "none"');
  expect(written("ipsec").join("\n")).toContain('"ipsec" with dataPath "bridge", wanted "none"');
  expect(written("none")).toEqual([]);
});
