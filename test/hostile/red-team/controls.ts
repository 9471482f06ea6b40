import { type Named, vocabularyOf } from "./grammar/vocabulary.ts";
import type { Hex } from "./parse.ts";
import type { Place, World } from "./world.ts";

/** Traffic that has to get through while the attacker attacks: without it, silence would prove nothing. */
export interface Control {
  readonly to: Named;
  readonly mac: Named;
  readonly place: Place;
}

/** In each family that the attacker has: to a pod beside it, to one of another node, to its node and to the world. */
export function controlsOf(world: World): readonly Control[] {
  const [own, ...others] = world.pods;
  const [node] = world.nodes;
  const { gatewayMac } = vocabularyOf(world);
  const friends = others.filter(({ project }) => !world.projectsApart || project === own.project);
  const near = friends.find((pod) => pod.node === own.node);
  const far = world.nodes.slice(1).flatMap(({ name }) => friends.find((pod) => pod.node === name) ?? []);
  const isThrough = (hex: Hex): boolean => own.addresses.some((mine) => mine.length === hex.length);
  const to = (hex: Hex, words: string, place: Place, mac: Hex): readonly Control[] =>
    isThrough(hex) ? [{ to: { hex, words }, mac: { hex: mac, words: `MAC of ${words}` }, place }] : [];
  const toPods = [...(near === undefined ? [] : [near]), ...far].flatMap((pod) =>
    pod.addresses.flatMap((hex) => {
      const mac = pod === near && world.mode !== "networkPolicyOnly" ? pod.mac : gatewayMac.hex;
      return to(hex, pod.name, { role: "pod", node: pod.node, pod: pod.name }, mac);
    }),
  );
  const toNode = node.addresses.flatMap((hex) =>
    to(hex, "the node", { role: "gateway", node: node.name }, gatewayMac.hex),
  );
  const out = world.external.flatMap((hex) => to(hex, "outside", { role: "wire", node: node.name }, gatewayMac.hex));
  return [...toPods, ...toNode, ...out];
}
