import { hexOf, hexOfMac, prefixOf } from "./sites/facts.ts";
import type { Pod, World, WorldNode } from "./world.ts";

const pod = (name: string, node: number, project: string, host: number): Pod => ({
  name,
  node: `n${node}`,
  project,
  mac: hexOfMac(`02:0a:00:00:0${node}:0${host}`),
  addresses: [hexOf(`10.10.${node}.${host}`), hexOf(`fd10:0:0:${node}::${host}`)],
  linkLocal: hexOf(`fe80::a:ff:fe00:${node}0${host}`),
});

const node = (number: number): WorldNode => ({
  name: `n${number}`,
  addresses: [hexOf(`172.30.0.${number}`), hexOf(`fd30:a::${number}`)],
  mac: hexOfMac(`02:00:ac:1e:00:0${number}`),
  gateway: {
    ifname: "gateway",
    mac: hexOfMac(`0e:00:00:00:00:0${number}`),
    addresses: [hexOf(`10.10.${number}.1`), hexOf(`fd10:0:0:${number}::1`)],
    linkLocal: hexOf(`fe80::c00:ff:fe00:${number}`),
  },
  subnets: [prefixOf(`10.10.${number}.0/24`), prefixOf(`fd10:0:0:${number}::/64`)],
  onSameLink: true,
});

/** Two nodes as a site's are, for what needs no site. */
export const sampleWorld = (changes: Partial<World> = {}): World => ({
  dataPath: "ovs",
  mode: "encap",
  tunnel: "geneve",
  projectsApart: true,
  nodes: [node(1), node(2)],
  pods: [
    pod("mallory", 1, "red", 2),
    pod("near", 1, "red", 3),
    pod("other", 1, "blue", 4),
    pod("far", 2, "red", 2),
    pod("apart", 2, "blue", 3),
  ],
  clusterNetworks: [prefixOf("10.10.0.0/16"), prefixOf("fd10::/48")],
  services: [
    { name: "behind", address: hexOf("10.97.0.8"), endpoint: { address: hexOf("10.10.2.3"), port: 9000 } },
    { name: "tunnel", address: hexOf("10.97.0.9"), endpoint: { address: hexOf("172.30.0.2"), port: 6081 } },
  ],
  external: [hexOf("198.51.100.1"), hexOf("2001:db8:51::1")],
  others: [{ mac: hexOfMac("02:00:ac:1e:ff:00"), address: hexOf("172.30.0.254") }],
  ...changes,
});
