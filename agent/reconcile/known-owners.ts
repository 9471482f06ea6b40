import { type Allocator, isNameless } from "../../ipam/mod.ts";

/** `false` where leases of the network, or the names of those who hold them, may have been lost with a damaged database. */
export const knowsEveryOwner = (allocator: Pick<Allocator, "isComplete" | "list">, network: string): boolean =>
  allocator.isComplete(network) && !allocator.list(network).some(({ owner }) => isNameless(owner));
