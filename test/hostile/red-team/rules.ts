/**
 * What a pod may send, and where that may arrive; each rule in the words under which a frame that breaks it is
 * reported. docs/overlay.md, "What a pod may send".
 */
export const rules = {
  untagged: "a pod's port takes untagged frames only",
  ownMac: "a pod sends from its own MAC",
  etherType: "nothing but ARP, IPv4 and IPv6 passes",
  malformed: "what has no room for its own addresses does not pass",
  ownAddress: "a pod sends from its own addresses",
  arpAboutItself: "ARP is about the pod itself",
  neighbourAboutItself: "neighbour discovery is about the pod itself",
  router: "a pod is no router: it advertises none",
  redirect: "a pod is no router: it redirects nobody",
  dhcp: "a pod is no DHCP server",
  loopback: "loopback addresses are nobody's but the sender's",
  answered: "ARP and neighbour discovery are answered by the switch: what pods put into them crosses to no other pod",
  projects: "projects are kept apart",
  flooded: "nothing is flooded: a frame arrives at whom it names",
  addressed: "a packet arrives at whom it is addressed to",
  absent: "what is for local addresses that nobody has is dropped",
  tunnel: "what looks like a packet of the tunnel does not leave the pod towards a node",
  link: "what goes beyond the link goes to the gateway, whatever MAC it names",
  source: "what leaves the node leaves it from the node's address",
  strange: "a node sends to its network what its pods may send there, and nothing else",
  configured: "what a pod sends changes nobody's routes and addresses",
  poisoned: "of neighbours everybody believes what is true",
  crowded: "addresses that nobody has take no place among neighbours",
  learned: "links and switches learn a MAC where it is",
} as const;

export type Rule = keyof typeof rules;
