import type { Owner, Pod } from "../../shared/cni/types.ts";
import { CniError } from "../../shared/errors.ts";
import { formatIp } from "../../shared/net/ip.ts";
import { Fields } from "../../shared/schema/json-fields.ts";
import { Allocator } from "../allocator.ts";
import { type IpamConfig, parseIpamConfig } from "../config/ipam-config.ts";
import type { Lease } from "../lease.ts";
import { MemoryStore } from "../store/memory-store.ts";

/** For tests: an allocator on a store in memory, with a clock and a boot of its own. */

/** The network is always `net`. */
export const configOf = (ipam: object, more: object = {}): IpamConfig =>
  parseIpamConfig({ conf: new Fields({ ipam, ...more }), network: "net", version: "1.0.0", args: "" });

/** Five addresses, 10.0.0.2 to 10.0.0.6; the gateway is 10.0.0.1. */
export const five = configOf({ subnet: "10.0.0.0/29", cooldownMs: 1000 });

export const ownerOf = (sandboxId: string, ifname = "eth0"): Owner => ({ network: "net", sandboxId, ifname });

export const podOf = (name: string, namespace = "default"): Pod => ({ namespace, name, uid: "" });

export const ipsOf = (leases: readonly Lease[]): readonly string[] => leases.map(({ address }) => formatIp(address.ip));

export function allocatorInMemory(bootId = "boot-1", store = new MemoryStore()) {
  const clock = { ms: 1_000_000 };
  /** Another allocator on the same leases, as after a reboot. */
  const boot = (id: string): Allocator => new Allocator(store, { bootId: id, now: () => clock.ms });
  const allocator = boot(bootId);
  /** The addresses that the sandbox gets, with a blank between. */
  const add = (id: string, wanted: IpamConfig = five, pod?: Pod): string =>
    ipsOf(allocator.allocate(ownerOf(id), wanted, pod).leases).join(" ");
  const del = (id: string): readonly Lease[] => allocator.release(ownerOf(id), "cooling");
  return { store, allocator, clock, boot, add, del };
}

/** What `run` is refused with; anything else than a refusal is thrown on. */
export function refusal(run: () => unknown): CniError {
  try {
    run();
  } catch (caught) {
    if (caught instanceof CniError) return caught;
    throw caught;
  }
  throw new Error("Broken invariant: this must be refused");
}
