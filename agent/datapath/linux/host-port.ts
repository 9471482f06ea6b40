import type { CniInterface } from "../../../shared/cni/types.ts";
import type { Link, Message } from "../../protocols/netlink/mod.ts";
import type { Plan } from "./plan.ts";

/** Decides which frames may enter by host ends. */
interface PortAdmission {
  /** The pod's hardware address as it was admitted; a pod may have set another one since. */
  macOf(host: Link): string | undefined;
  /**
   * To be called before the interface is up. Repeatable.
   * @throws {NetlinkError | CniError} in which case nothing may enter
   */
  admit(host: Link, plan: Plan, podMac: string): void;
  /** To be called once it is down. */
  dismiss(host: Link): void;
}

/** The switch that host ends are ports of: a kernel bridge or Open vSwitch. Each data path has its own. */
export interface HostPort {
  /** First of a result's interfaces. */
  readonly bridge: CniInterface;
  /** The interface that has the gateway's addresses, where the node knows pods as its neighbours. */
  readonly gateway: Pick<Link, "name" | "index">;
  /** Index of the bridge that a host end is created on; 0: it becomes a port by `connect`. */
  readonly master: number;
  /** `false`: the switch forwards packets unchanged, so pods have to send complete checksums. */
  readonly finishesChecksums: boolean;
  /** In which of `linkGroup` a host's end is in service. */
  readonly group: number;
  /** Further settings of a port. @param podMac the pod's hardware address */
  portOptions(host: Link, podMac: Uint8Array): readonly Message[];
  /** Controls which frames may enter by a host end. Absent: the switch does it by itself. */
  readonly guard?: PortAdmission;
  /** Makes a host end a port if its creation does not; the pod's end is set up meanwhile. Repeatable. */
  connect?(host: Link, plan: Plan, podMac: string): Promise<void>;
  /** Undoes `connect`, before the pair goes. */
  disconnect?(plan: Plan): Promise<void>;
}
