import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { scratchDir } from "../../../test/support/scratch-dir.ts";
import { removeData } from "./data-directory.ts";

const made = [
  ...["leases.db", "leases.db-wal", "leases.db.damaged-20261124T000000Z", "agent.lock", "nodes.json", "node-uid"],
  ...["agent.log", "agent.log.1", "policies.log", "policies.log.1", "history.jsonl", "history.jsonl.1"],
  ...["policies.state", "wireguard.key", "wireguard.used", "ipsec/current", "ipsec/1/key.pem"],
];

test("all that an agent has made goes, its keys too, and with it the directory", async () => {
  using scratch = scratchDir();
  const dataDir = join(scratch.path, "data");
  mkdirSync(join(dataDir, "ipsec", "1"), { recursive: true });
  for (const name of made) writeFileSync(join(dataDir, name), "");
  expect(await removeData(dataDir).run?.()).toBeUndefined();
  expect(readdirSync(scratch.path)).toEqual([]);
});

test("what is somebody else's stays, and what the node's addresses are to be restored by", async () => {
  using scratch = scratchDir();
  const others = ["leases.json", "uplink.json", "wireguard.key.mine"];
  for (const name of [...others, "leases.db"]) writeFileSync(join(scratch.path, name), "");
  expect(await removeData(scratch.path).run?.()).toContain(
    'it holds "leases.json", "uplink.json", "wireguard.key.mine"',
  );
  expect(readdirSync(scratch.path).sort()).toEqual(others);
});
