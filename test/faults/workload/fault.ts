import type { StressKind, StressNode, StressPod } from "../node/stress-node.ts";

/** A fault that is in force. Disposing ends it: the full disk has room again, the frozen agent goes on. */
export interface Struck extends AsyncDisposable {
  /** For the log: whom or what it met. */
  readonly what: string;
  /** Pods that lost their network by it and get it back only by being made anew, as after a reboot. */
  readonly lost: readonly StressPod[] | "all";
}

/** What can go wrong on a node, as docs/reliability.md lists it. */
export interface Fault {
  /** In its words, as a test's name: "the agent is killed". */
  readonly name: string;
  /** Data paths where it can happen. */
  readonly on: readonly StressKind[];
  /**
   * CNI error codes with which calls may be refused while it is in force and until its end has settled. Any other
   * failure is a defect, and so is a pod that loses its network without standing in `lost`.
   */
  readonly refusals: Readonly<Partial<Record<"ADD" | "DEL" | "CHECK" | "GC" | "STATUS", readonly number[]>>>;
  /** Packets may be lost while it is in force: the switch itself is down. Pods have their network again afterwards. */
  readonly interrupts?: true;
  /** The agent is another process afterwards. One that ends under any other fault is a defect. */
  readonly endsAgent?: true;
  /** Plugins are killed: a call may end without an answer. Its runtime goes on as after an error. */
  readonly killsPlugins?: true;
  /** May strike while another fault is in force, whatever that is. */
  readonly joinsOthers?: true;
  /** @param random whole numbers from 0 to below its argument, the same for the same seed */
  strike(node: StressNode, pods: readonly StressPod[], random: (bound: number) => number): Promise<Struck>;
}
