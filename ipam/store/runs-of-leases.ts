import type { Lease } from "../lease.ts";
import { numberOf } from "./address-key.ts";

/** An unbroken run of taken addresses of a network, in numbers of `address-key.ts`. */
export interface TakenRun {
  readonly network: string;
  readonly first: bigint;
  readonly last: bigint;
}

/** The runs of taken addresses of leases, which are given by network and address. */
export function* runsOfLeases(leases: Iterable<Lease>): Generator<TakenRun, void> {
  let run: { network: string; first: bigint; last: bigint } | undefined;
  for (const { owner, address } of leases) {
    const number = numberOf(address.ip);
    if (run !== undefined && run.network === owner.network && run.last + 1n === number) {
      run.last = number;
      continue;
    }
    if (run !== undefined) yield run;
    run = { network: owner.network, first: number, last: number };
  }
  if (run !== undefined) yield run;
}
