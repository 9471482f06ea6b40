/** How packets reach other nodes (`docs/overlay.md`). */
export const trafficModes = ["encap", "noEncap", "hybrid", "networkPolicyOnly"] as const;
export type TrafficMode = (typeof trafficModes)[number];

export const tunnelTypes = ["geneve", "vxlan", "gre", "stt"] as const;
export type TunnelType = (typeof tunnelTypes)[number];

/** Who forwards: the kernel's module (on Windows its extension), or ovs-vswitchd itself. */
export const switchKinds = ["system", "netdev"] as const;
export type SwitchKind = (typeof switchKinds)[number];

export interface TunnelOptions {
  readonly type: TunnelType;
  /** Name of the port on the bridge. */
  readonly name: string;
  /** UDP or TCP port of the other end; absent: the protocol's own. */
  readonly port?: number;
  /** Packets carry a checksum of the outer header. */
  readonly checksum: boolean;
}
