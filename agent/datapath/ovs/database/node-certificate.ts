import { Transaction } from "../../../protocols/ovsdb/mod.ts";
import type { CertificateFiles } from "../options.ts";
import type { SwitchDatabase } from "./switch-database.ts";

/** Marks the keys as ours. */
const ownKey = "pipette-ipsec";
const keys = ["certificate", "private_key", "ca_cert"] as const;

/**
 * Tells ovs-monitor-ipsec what the node shows (ovs-vswitchd.conf.db(5), "IPsec"); what is right is not touched.
 * @param files `undefined`: nothing, and what an agent has told before goes; somebody else's stays
 * @throws {OvsdbError}
 */
export async function bringCertificate(db: SwitchDatabase, files: CertificateFiles | undefined): Promise<void> {
  const [row] = db.view.rows("Open_vSwitch").values();
  if (row === undefined) return;
  const isOurs = row.external_ids.has(ownKey);
  const wanted =
    files === undefined
      ? {}
      : { certificate: files.certificate, private_key: files.privateKey, ca_cert: files.caCertificate };
  if (
    files === undefined
      ? !isOurs
      : isOurs && Object.entries(wanted).every(([key, is]) => row.other_config.get(key) === is)
  )
    return;
  const transaction = new Transaction("tell of the node's certificate");
  transaction.mutate("Open_vSwitch", [], [["other_config", "delete", [...keys]]]);
  transaction.mutate("Open_vSwitch", [], [["external_ids", "delete", [ownKey]]]);
  if (files !== undefined) {
    transaction.mutate("Open_vSwitch", [], [["other_config", "insert", wanted]]);
    transaction.mutate("Open_vSwitch", [], [["external_ids", "insert", { [ownKey]: "certificate" }]]);
  }
  await db.transact(transaction);
}
