import type { NetworkNamespace } from "../../../support/network-namespace.ts";
import type { Hex } from "../parse.ts";
import type { Pod, Service, WorldNode } from "../world.ts";

/** Of services' addresses, which nobody has. */
const blocks = { 4: "0a6100", 6: "fd9700000000000000000000000000" } as const;
const hostOf = { beside: "07", behind: "08", tunnel: "09" } as const;

const familyOf = (address: Hex): 4 | 6 => (address.length === 8 ? 4 : 6);
const addressOf = (name: keyof typeof hostOf, family: 4 | 6): Hex => `${blocks[family]}${hostOf[name]}`;

/** One in each family that leads to a pod: of another project, where they are kept apart. */
export function servicesTo(pods: readonly Pod[], pod: string, name: "beside" | "behind"): readonly Service[] {
  const found = pods.find((one) => one.name === pod);
  return (found?.addresses ?? []).map((address) => ({
    name,
    address: addressOf(name, familyOf(address)),
    endpoint: { address, port: 9000 },
  }));
}

/** Those that lead to where the other node's tunnel ends. */
export function tunnelServices([, other]: readonly WorldNode[]): readonly Service[] {
  return (other?.addresses ?? []).map((address) => ({
    name: "tunnel",
    address: addressOf("tunnel", familyOf(address)),
    endpoint: { address, port: 6081 },
  }));
}

const text = (hex: Hex): string =>
  hex.length === 8 ? [...Buffer.from(hex, "hex")].join(".") : (hex.match(/.{4}/g) ?? []).join(":");

/** Has a node's kernel translate them, before anything is routed, as kube-proxy has it. */
export async function translate(node: NetworkNamespace, services: readonly Service[]): Promise<void> {
  const rules = services.map(({ address, endpoint }) => {
    const [ip, to] = familyOf(address) === 4 ? ["ip", text(endpoint.address)] : ["ip6", `[${text(endpoint.address)}]`];
    return `${ip} daddr ${text(address)} meta l4proto udp dnat ${ip} to ${to}:${endpoint.port};`;
  });
  const chain = `type nat hook prerouting priority dstnat; ${rules.join(" ")}`;
  await node.run("nft -f -", `table inet services { chain translated { ${chain} }; }`);
}
