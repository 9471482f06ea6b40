import type { NetworkNamespace } from "../../support/network-namespace.ts";
import { clusterNetworks } from "./addresses.ts";

const [v4, v6] = clusterNetworks;

/** How packets between pods can look on their way from node to node: in which tunnel, or as they are. */
const kinds = {
  geneve: ["udp dport 6081"],
  vxlan: ["udp dport 4789"],
  gre: ["ip protocol gre"],
  stt: ["tcp dport 7471"],
  plain: [`ip saddr ${v4.cidr}`, `ip6 saddr ${v6.cidr}`],
} as const;

export type WireKind = keyof typeof kinds;
const kindNames = Object.keys(kinds) as WireKind[];

/** Counts what nodes send, where it leaves them: what the nodes themselves know of is not asked. */
export class Wire {
  readonly #underlay: NetworkNamespace;

  constructor(underlay: NetworkNamespace) {
    this.#underlay = underlay;
  }

  async start(): Promise<void> {
    const counters = kindNames.map((kind) => `counter ${kind} { };`).join(" ");
    await this.#underlay.run("nft -f -", `table netdev wire { ${counters} }`);
  }

  /** Watches the end of a cable. */
  async watch(end: string): Promise<void> {
    const rules = kindNames.flatMap((kind) => kinds[kind].map((match) => `${match} counter name ${kind};`)).join(" ");
    const hook = `type filter hook ingress device ${end} priority 0;`;
    await this.#underlay.run("nft -f -", `table netdev wire { chain ${end} { ${hook} ${rules} }; }`);
  }

  /** The kinds that were seen while `work` ran. */
  async during(work: () => Promise<unknown>): Promise<readonly WireKind[]> {
    await this.#underlay.run("nft reset counters");
    await work();
    const { nftables }: { nftables: { counter?: { name: WireKind; packets: number } }[] } = JSON.parse(
      await this.#underlay.run("nft -j list counters"),
    );
    return nftables
      .flatMap(({ counter }) => (counter !== undefined && counter.packets > 0 ? [counter.name] : []))
      .sort();
  }
}
