import type { CniVersion } from "../../shared/cni/versions.ts";
import type { Cidr } from "../../shared/ip.ts";
import type { LogLevel } from "../../shared/log.ts";

/** `agent.yaml`, checked and with its defaults; what each key means stands in `conf/agent.yaml`. */
export interface AgentConfig {
  readonly socket: string;
  readonly dataDir: string;
  readonly logLevel: LogLevel;
  readonly cni: ConflistConfig;
  readonly networks: readonly NetworkConfig[];
  readonly callTimeoutMs: number;
  readonly drainTimeoutMs: number;
  readonly janitorIntervalMs: number;
  readonly cooldownMs: number;
}

/** The CNI network configuration that the agent writes for the runtime, for the first network. */
export interface ConflistConfig {
  readonly confDir: string;
  /** Empty: no file is written. */
  readonly fileName: string;
  /** What every runtime reads. */
  readonly cniVersion: CniVersion;
  /** What newer runtimes choose from (specification 1.1.0, `cniVersions`); empty: the key is left out. */
  readonly cniVersions: readonly CniVersion[];
  /** Chained after ours, as they are. */
  readonly plugins: readonly Readonly<Record<string, unknown>>[];
}

export interface NetworkConfig {
  readonly name: string;
  /** One or two blocks, one per family; the first address of each is the gateway. */
  readonly subnets: readonly Cidr[];
  readonly bridge: string;
  /** Bytes. */
  readonly mtu?: number;
  readonly hairpin: boolean;
  readonly masquerade: boolean;
  /** Addresses and blocks that no pod gets. */
  readonly exclude: readonly string[];
  /** A pod gets its last addresses back while they are free. */
  readonly sticky: boolean;
}
