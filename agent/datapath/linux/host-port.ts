import type { CniInterface } from "../../../shared/cni/types.ts";
import type { Link, Message } from "../../protocols/netlink/mod.ts";
import type { Plan } from "./plan.ts";

/** Says what may come in by host's ends. */
interface PortAdmission {
  /** The pod's hardware address as it was admitted; a pod may have set another one since. */
  macOf(host: Link): string | undefined;
  /** Before it is up. Repeatable. @throws {NetlinkError | CniError} where nothing may come in then */
  admit(host: Link, plan: Plan, podMac: string): void;
  /** Once it is down. */
  dismiss(host: Link): void;
}

/** What the host's ends of pairs are ports of: a kernel bridge, Open vSwitch. Each data path has its own. */
export interface HostPort {
  /** First of a result's interfaces. */
  readonly bridge: CniInterface;
  /** The interface that has the gateway's addresses, where the node knows pods as its neighbours. */
  readonly gateway: Pick<Link, "name" | "index">;
  /** Index of the interface that a host's end is a port of from its creation on; 0: it becomes a port by `connect`. */
  readonly master: number;
  /** `false`: whoever forwards passes packets on as they are, so that pods have to send them with whole checksums. */
  readonly finishesChecksums: boolean;
  /** In which of `linkGroup` a host's end is in service. */
  readonly group: number;
  /** What a port needs besides. @param podMac the pod's hardware address */
  portOptions(host: Link, podMac: string): readonly Message[];
  /** What may come in by a host's end. Absent: whoever forwards keeps to that by itself. */
  readonly guard?: PortAdmission;
  /** Makes a host's end a port where its creation does not; the pod's end is set up meanwhile. Repeatable. */
  connect?(host: Link, plan: Plan, podMac: string): Promise<void>;
  /** Undoes `connect`, before the pair goes. */
  disconnect?(plan: Plan): Promise<void>;
}
