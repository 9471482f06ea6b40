import { exitStatus } from "../../shared/terminal/exit-status.ts";
import type { TerminalIo } from "../../shared/terminal/terminal-io.ts";
import { databaseIn } from "../data-directory.ts";
import type { Lease } from "../lease.ts";
import { StoreSnapshot } from "../store/store-snapshot.ts";
import { ipamConfigOf } from "./network-conf.ts";
import { sayMissing, sayNothingGiven } from "./open-store.ts";
import { type Pool, poolsOfConfig, poolsOfStore } from "./pools.ts";
import { type Scope, unknownNetwork } from "./scope.ts";

/** The pools of a command line at one moment, and what keeps their addresses. */
export interface PoolLook {
  readonly pools: readonly Pool[];
  /** Leases that keep their addresses, by network and address; of one network where one was asked for. */
  leases(network?: string): Iterable<Lease>;
  readonly marks: ReadonlyMap<string, string>;
}

/**
 * Looks at the ranges of the configuration, else at those that the database remembers. Before a network's first ADD
 * there need not be a database: then all that is configured is free.
 * @param use answers the exit status
 */
export async function withPools(
  scope: Scope,
  action: string,
  io: TerminalIo,
  use: (look: PoolLook) => number | Promise<number>,
): Promise<number> {
  const { conf, network, dataDir } = scope;
  const unknown = await unknownNetwork(scope, action, io);
  if (unknown !== undefined) return unknown;
  const config = conf === undefined ? undefined : await ipamConfigOf(conf);
  using snapshot = await StoreSnapshot.open(databaseIn(dataDir));
  if (conf === undefined || config === undefined) {
    if (snapshot === undefined) {
      sayMissing(dataDir, action, io);
      return exitStatus.notThere;
    }
    const leases: PoolLook["leases"] = (name = network) => snapshot.kept(Date.now(), name);
    return await use({ pools: poolsOfStore(snapshot, network), leases, marks: snapshot.marks() });
  }
  if (snapshot === undefined) sayNothingGiven(dataDir, io);
  const configured = { network: conf.network, cooldownMs: config.cooldownMs };
  const pools = poolsOfConfig(conf.network, config).filter((pool) => pool.network === network);
  const leases: PoolLook["leases"] = (name = network) => snapshot?.kept(Date.now(), name, configured) ?? [];
  return await use({ pools, leases, marks: snapshot?.marks() ?? new Map() });
}
