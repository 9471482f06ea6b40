import { closeSync, openSync, unlinkSync } from "node:fs";
import { Allocator, parseIpamConfig } from "../../ipam/mod.ts";
import { formatIp } from "../../shared/net/ip.ts";
import { Fields } from "../../shared/schema/json-fields.ts";
import { random } from "../support/random.ts";

/**
 * One process of `churn.test.ts`: pods come and go on handles of its own. Whoever holds an address holds a file of its
 * name too, which can be made once only: an address that is given out twice ends the process.
 */
const [, , confText = "{}", claims = "", name = "", handles = "1", pods = "1"] = process.argv;
const conf = new Fields(JSON.parse(confText));
const network = conf.string("name") ?? "";
const config = parseIpamConfig({ conf, network, version: "1.1.0", args: "" });
const pick = random(Number(name) + 1);
const stores = await Promise.all(Array.from({ length: Number(handles) }, () => Allocator.open(config.dataDir)));
const held = new Map<Allocator, { readonly sandboxId: string; readonly address: string }>();

function leave(store: Allocator): void {
  const pod = held.get(store);
  if (pod === undefined) return;
  held.delete(store);
  unlinkSync(`${claims}/${pod.address}`);
  const left = store.release({ network, sandboxId: pod.sandboxId, ifname: "eth0" }, "cooling");
  if (left.length !== 1) throw new Error(`The lease of ${pod.address} was lost`);
}

for (let i = 0; i < Number(pods); i++) {
  const store = stores[pick(stores.length)];
  if (store === undefined) continue;
  leave(store);
  const sandboxId = `w${name}-${i}`;
  const { leases, created } = store.allocate({ network, sandboxId, ifname: "eth0" }, config);
  if (!created || leases.length !== 1) throw new Error(`A new pod got ${leases.length} leases that are not new`);
  const address = leases.map((lease) => formatIp(lease.address.ip)).join();
  closeSync(openSync(`${claims}/${address}`, "wx"));
  held.set(store, { sandboxId, address });
}
for (const store of stores) leave(store);
for (const store of stores) store[Symbol.dispose]();
