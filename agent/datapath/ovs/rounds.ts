import { Transaction } from "../../protocols/ovsdb/mod.ts";
import { lastRound } from "./pipeline/cookie.ts";
import { bridgeNamed, type SwitchDatabase } from "./switch-database.ts";

const key = "pipette-round";

/** Keeps the number of the last round with the bridge, which is gone when the flows are. */
export const roundsOf = (db: SwitchDatabase, bridge: string) => ({
  async loadRound(): Promise<number | undefined> {
    const round = Number(bridgeNamed(db.view, bridge)?.external_ids.get(key));
    return Number.isInteger(round) && round >= 1 && round <= lastRound ? round : undefined;
  },
  async saveRound(round: number): Promise<void> {
    const transaction = new Transaction(`keep the number of this start with the bridge "${bridge}"`);
    transaction.mutate("Bridge", [["name", "==", bridge]], [["external_ids", "delete", [key]]]);
    transaction.mutate("Bridge", [["name", "==", bridge]], [["external_ids", "insert", { [key]: String(round) }]]);
    await db.transact(transaction);
  },
});
