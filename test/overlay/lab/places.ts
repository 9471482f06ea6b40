import { external, isOfPods } from "./addresses.ts";
import type { Lab } from "./lab.ts";
import type { LabNode } from "./lab-node.ts";
import type { LabPod } from "./lab-pod.ts";
import type { Place } from "./reach.ts";

/** A pod goes under its own address to pods, gateways and its own node, and under its node's to everything else. */
export function podPlace(pod: LabPod): Place {
  const isNear = (address: string): boolean => isOfPods(address) || pod.node.addresses.includes(address);
  return {
    name: `${pod.node.name}/${pod.name}`,
    namespace: pod.namespace,
    addresses: pod.addresses,
    seenAs: (address) => (isNear(address) ? pod.addresses : pod.node.addresses),
  };
}

/** A node is there under its own addresses and under those of its gateway. */
export function nodePlace(node: LabNode): Place {
  const [pod] = node.pods;
  return {
    name: node.name,
    namespace: node.namespace,
    addresses: [...node.addresses, ...(pod?.gateways ?? [])],
  };
}

/** Every pod and every node. */
export const placesOf = (lab: Lab): readonly Place[] => [
  ...lab.nodes.flatMap((node) => [...node.pods].map((pod) => podPlace(pod))),
  ...lab.nodes.map(nodePlace),
];

/** Whom nobody knows a way to pods from. */
export const beyond = (lab: Lab): Place => ({
  name: "external",
  namespace: lab.underlay.namespace,
  addresses: external,
});
