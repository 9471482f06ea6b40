import { mkdirSync, writeFileSync } from "node:fs";
import { firstOf, formatIp, parseCidr, plus } from "../../shared/net/ip.ts";

/** Leases side by side in host-local's own files: one per address, and the last one given. */
export function fillHostLocal(dataDir: string, network: string, subnet: string, leases: number): void {
  const directory = `${dataDir}/${network}`;
  mkdirSync(directory, { recursive: true });
  const cidr = parseCidr(subnet);
  if (cidr === undefined || leases === 0) return;
  const first = plus(firstOf(cidr), 2n);
  for (let i = 0; i < leases; i++) {
    writeFileSync(`${directory}/${formatIp(plus(first, BigInt(i)))}`, `standing-${i}\r\neth0`);
  }
  writeFileSync(`${directory}/last_reserved_ip.0`, formatIp(plus(first, BigInt(leases - 1))));
}
