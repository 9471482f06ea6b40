import { Allocator, parseIpamConfig } from "../../../ipam/mod.ts";
import { formatIp } from "../../../shared/net/ip.ts";
import { Fields } from "../../../shared/schema/json-fields.ts";

/**
 * One process of `addresses.test.ts`: it gives containers addresses, opens the database anew now and then as plugins do, says
 * which, and takes every other one back. All networks have the same addresses.
 */
const [, , dataDir = "", name = "", containers = "0", networks = "1"] = process.argv;
const conf = new Fields({ ipam: { dataDir, ranges: [[{ subnet: "10.72.0.0/20" }]] } });
const given: string[] = [];
/** Containers that are served by one opening: more than a plugin's one, since each costs as much as twenty of them. */
const atOnce = 10;
let store = await Allocator.open(dataDir);

for (let i = 0; i < Number(containers); i++) {
  const network = `net-${i % Number(networks)}`;
  const config = parseIpamConfig({ conf, network, version: "1.1.0", args: "" });
  const owner = { network, sandboxId: `w${name}-${i}`, ifname: "eth0" };
  if (i % atOnce === 0) {
    store[Symbol.dispose]();
    store = await Allocator.open(dataDir);
  }
  const [lease] = store.allocate(owner, config).leases;
  if (lease === undefined) throw new Error(`${owner.sandboxId} has got no address`);
  given.push(`${network} ${formatIp(lease.address.ip)}`);
  const [found] = store.find(owner);
  if (found?.generation !== lease.generation) throw new Error(`${owner.sandboxId} is not found again`);
  // The second half goes as it comes, so that pools fill while addresses cool.
  if (i % 2 === 1 && store.release(owner, "cooling").length !== 1) throw new Error(`${owner.sandboxId} was lost`);
}
store[Symbol.dispose]();
console.log(given.join("\n"));
