import type { Owner, Pod } from "../shared/cni/types.ts";
import type { IpamConfig } from "./config.ts";
import type { Lease, LeaseState } from "./lease.ts";

/** Where a lease goes that its owner leaves: `releasing` while an interface may stand, else `cooling`. */
export type LeftState = Exclude<LeaseState, "allocated">;

/** What one `allocate` answered: a lease per range set, in their order. */
export interface Allocation {
  readonly leases: readonly Lease[];
  /** `false` where the owner held them before. */
  readonly created: boolean;
}

/** Numbers of one range set; the gateway is not counted. `total = used + cooling + free`. */
export interface RangeUsage {
  /** `start-end[,start-end]`. */
  readonly range: string;
  readonly total: bigint;
  /** Allocated or releasing. */
  readonly used: number;
  readonly cooling: number;
  readonly free: bigint;
}

/** An attachment by the names that the CNI specification has for it. */
export interface Attachment {
  readonly containerId: string;
  readonly ifname: string;
}

const later = (): never => {
  throw new Error("Broken invariant: the allocator is not wired up yet");
};

/**
 * Addresses of one data directory. Every method is one transaction: it has happened as a whole, durably
 * against a crash of the process, or not at all.
 */
export class Allocator implements Disposable {
  /**
   * Opens `<dataDir>/leases.db`, and makes both when missing.
   * @throws {CniError} code 101 naming the path
   */
  static async open(_dataDir: string): Promise<Allocator> {
    return later();
  }

  /**
   * Gives the owner one address per range set, or those that it holds already.
   * @throws {CniError} code 101 where a range set is exhausted or a requested address cannot be given
   */
  allocate(_owner: Owner, _config: IpamConfig, _pod?: Pod): Allocation {
    return later();
  }

  /** Takes back what this allocation created, and nothing that was there before or came after it. */
  undo(_allocation: Allocation, _to: LeftState): void {
    later();
  }

  /** The owner's allocated leases in the order of their range sets. */
  find(_owner: Owner): readonly Lease[] {
    return later();
  }

  /** Ends the owner's allocated leases; answers them as they are now. Nothing to release is no error. */
  release(_owner: Owner, _to: LeftState): readonly Lease[] {
    return later();
  }

  /** `releasing` becomes `cooling`; `false` where this very lease (by its generation) is not releasing any more. */
  settle(_lease: Lease): boolean {
    return later();
  }

  /** Ends every allocated lease of the network whose attachment is not in `keep`; answers their owners. */
  retain(_network: string, _keep: readonly Attachment[], _to: LeftState): readonly Owner[] {
    return later();
  }

  /** Leases in any state, by network and address. */
  list(_network?: string): readonly Lease[] {
    return later();
  }

  /** One entry per range set. */
  usage(_network: string, _config: IpamConfig): readonly RangeUsage[] {
    return later();
  }

  /** @throws {CniError} code 101 naming the path and the reason where nothing can be written */
  requireWritable(): void {
    later();
  }

  /** Remembers that the agent still has to unwire this attachment, whose address another IPAM plugin keeps. */
  recordDeparture(_owner: Owner): void {
    later();
  }

  departures(): readonly Owner[] {
    return later();
  }

  forgetDeparture(_owner: Owner): void {
    later();
  }

  [Symbol.dispose](): void {
    later();
  }
}
