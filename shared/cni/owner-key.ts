import type { Owner } from "./types.ts";

/** One text per owner: none of the three names can hold a line break. */
export const ownerKey = (owner: Owner): string => `${owner.network}\n${owner.sandboxId}\n${owner.ifname}`;

export const sameOwner = (a: Owner, b: Owner): boolean =>
  a.sandboxId === b.sandboxId && a.ifname === b.ifname && a.network === b.network;

/** For messages and logs. */
export const ownerFields = (owner: Owner): { network: string; container: string; ifname: string } => ({
  network: owner.network,
  container: owner.sandboxId,
  ifname: owner.ifname,
});
