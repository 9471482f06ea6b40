import { mkdirSync, writeFileSync } from "node:fs";
import { Allocator, parseIpamConfig } from "../../../ipam/mod.ts";
import { formatIp, parseIp, plus } from "../../../shared/ip.ts";
import { Fields } from "../../../shared/json-fields.ts";
import { budgetOfAdd } from "../budgets.ts";
import { runTimed, verbEnv } from "../plugin-process.ts";
import { compare, type Row } from "../row.ts";
import type { Setting } from "../setting.ts";

const network = "bench";
const subnet = "10.128.0.0/12";

const confFor = (type: string, dataDir: string): string =>
  JSON.stringify({
    cniVersion: "1.0.0",
    name: network,
    type: "bench",
    ipam: { type, dataDir, ranges: [[{ subnet }]] },
  });

/** Cold ADD of `pipette-ipam` against host-local, with so many leases already in the pool. */
export async function measureAllocate(setting: Setting): Promise<Row[]> {
  const rows: Row[] = [];
  for (const leases of setting.fills) {
    setting.progress(`ADD with ${leases} leases in the pool`);
    const oursDir = `${setting.scratch}/ours-${leases}`;
    const peerDir = `${setting.scratch}/peer-${leases}`;
    await fillOurs(oursDir, leases);
    fillHostLocal(peerDir, leases);
    const add =
      (executable: string, conf: string) =>
      (round: number): number =>
        runTimed({ executable, env: verbEnv("ADD", `new-${round}`, "/var/run/netns/bench", setting.peers), conf }).ms;
    const row = await compare({
      measure: `pipette-ipam ADD, ${leases} leases`,
      ...budgetOfAdd(leases),
      rounds: leases > 1000 ? Math.ceil(setting.rounds / 3) : setting.rounds,
      ours: add(`${setting.dist}/pipette-ipam`, confFor("pipette-ipam", oursDir)),
      peer: add(`${setting.peers}/host-local`, confFor("host-local", peerDir)),
      peerName: "host-local ADD",
    });
    rows.push(row);
  }
  return rows;
}

async function fillOurs(dataDir: string, leases: number): Promise<void> {
  using allocator = await Allocator.open(dataDir);
  const conf = Fields.parse(confFor("pipette-ipam", dataDir));
  const config = parseIpamConfig({ conf, network, version: "1.0.0", args: "" });
  for (let i = 0; i < leases; i++) allocator.allocate({ network, sandboxId: `standing-${i}`, ifname: "eth0" }, config);
}

/** host-local's own files: one per address, and the last one given. */
function fillHostLocal(dataDir: string, leases: number): void {
  const directory = `${dataDir}/${network}`;
  mkdirSync(directory, { recursive: true });
  const first = parseIp("10.128.0.2");
  if (first === undefined || leases === 0) return;
  for (let i = 0; i < leases; i++) {
    writeFileSync(`${directory}/${formatIp(plus(first, BigInt(i)))}`, `standing-${i}\r\neth0`);
  }
  writeFileSync(`${directory}/last_reserved_ip.0`, formatIp(plus(first, BigInt(leases - 1))));
}
