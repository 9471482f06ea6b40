import type { FindingMessage } from "../../shared/proto/ipam-messages.ts";
import { databaseIn } from "../allocator.ts";
import { checkDatabase } from "../check/check-store.ts";
import type { IpamHost } from "./ipam-rpcs.ts";

/** What `pipette ipam check` says of the host's database, without any ranges in mind. */
export async function findingsIn({ allocator, dataDir }: IpamHost): Promise<readonly FindingMessage[]> {
  const context = { nowMs: Date.now(), bootId: allocator.bootId };
  const report = await checkDatabase(databaseIn(dataDir), context);
  return (report?.findings ?? []).map((finding) => ({
    ...finding,
    network: finding.network ?? "",
    repairable: finding.repairable ?? false,
  }));
}
