import type { StartTrace, TracedPacket } from "../../shared/documents/mod.ts";
import type { DataPathName } from "../config/agent-config.ts";

/** The part of a data path that follows single packets through the node. */
export interface PacketTracing {
  /** How packets reach other nodes from here, in words. */
  readonly title: string;
  /**
   * Looks out for packets from now on, and sends the one that is to be injected.
   * @throws {CniError} 7 where what is asked for cannot be, 11 where the switch is away
   */
  start(request: StartTrace): Promise<PacketTrace>;
}

/** What to ask where no switch can tell of single packets: of policies everywhere, of the rest by the system's own tools. */
export const insteadOfTracing: Readonly<Record<DataPathName, string>> = {
  bridge:
    '"pipette policy why FROM TO --port PORT" tells of policies, "nft list table bridge pipette-BRIDGE" of what pods may not send, and tcpdump at a pod\'s interface ("pipette get pods") of what comes there',
  hns: '"pipette policy why FROM TO --port PORT" tells of policies, and pktmon of what comes to the node',
  ovs: '"pipette status" says what its data path waits for',
};

/** One trace on this node. Disposing of it ends it, and so does its time. */
export interface PacketTrace extends AsyncDisposable {
  /** Grows with each change. */
  readonly revision: number;
  /** Why nothing more is to come; absent while it looks. Empty: its time is over. */
  readonly ended: string | undefined;
  readonly packets: readonly TracedPacket[];
  /** Packets that were not dropped here. */
  readonly passed: number;
  /** There were more than could be followed, so that some were not. */
  readonly paused: boolean;
  /** Resolves with the next change. */
  changed(): Promise<void>;
}
