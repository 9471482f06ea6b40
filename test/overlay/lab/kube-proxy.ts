import type { NetworkNamespace } from "../../support/network-namespace.ts";
import { clusterNetworks } from "./addresses.ts";

/** One port that is translated, as kube-proxy does for a service's address and portmap for a host port. */
export interface Translation {
  readonly address: string;
  readonly port: number;
  readonly endpoint: string;
}

/**
 * Whose source is hidden behind the node on the way to the endpoint. `some`: who reaches itself, and who is no pod, as
 * kube-proxy has it by default. `all`: everybody, as with `--masquerade-all`, and for node ports.
 */
export type Hiding = "some" | "all";

/** Both protocols go to this port of the endpoint. */
export const endpointPort = 8080;

/** Has a node's kernel translate, with rules of the same kind, hooks and priorities as kube-proxy's; in place of earlier ones. */
export async function translate(
  node: NetworkNamespace,
  translations: readonly Translation[],
  hiding: Hiding,
): Promise<void> {
  const family = (address: string): "ip" | "ip6" => (address.includes(":") ? "ip6" : "ip");
  const at = (endpoint: string): string => (family(endpoint) === "ip" ? endpoint : `[${endpoint}]`);
  const to = translations.flatMap(({ address, port, endpoint }) =>
    ["tcp", "udp"].map(
      (protocol) =>
        `${family(address)} daddr ${address} ${protocol} dport ${port} dnat ${family(address)} to ${at(endpoint)}:${endpointPort};`,
    ),
  );
  const endpoints = [...new Set(translations.map(({ endpoint }) => endpoint))];
  const hide =
    hiding === "all"
      ? ["ct status dnat masquerade;"]
      : [
          ...endpoints.map((endpoint) => {
            const ip = family(endpoint);
            return `ct status dnat ${ip} saddr ${endpoint} ${ip} daddr ${endpoint} masquerade;`;
          }),
          ...clusterNetworks.map(({ cidr }) => `ct status dnat ${family(cidr)} saddr != ${cidr} masquerade;`),
        ];
  await node.run(
    "nft -f -",
    `table inet kube { }
     delete table inet kube
     table inet kube {
       chain to { type nat hook prerouting priority dstnat; ${to.join(" ")} }
       chain own { type nat hook output priority -100; ${to.join(" ")} }
       chain hide { type nat hook postrouting priority srcnat; ${hide.join(" ")} }
     }`,
  );
}
