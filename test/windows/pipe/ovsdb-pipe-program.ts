import { writeFileSync } from "node:fs";
import { insertBridge, insertPort, OvsdbClient, Transaction } from "../../../agent/protocols/ovsdb/mod.ts";
import { reasonOf } from "../../../shared/reason.ts";
import { relay } from "./tcp-relay.ts";

/**
 * Compiled for Windows and run in Wine. As `relay PIPE PORT` it serves a pipe, as Open vSwitch does on Windows, with the
 * database that listens on a TCP port; as `client ADDRESS` it is a program that uses the database, and says what it sees.
 */
const say = (line: unknown): void => writeFileSync(1, `${JSON.stringify(line)}\n`);

async function client(address: string): Promise<void> {
  const monitored = { Bridge: ["name", "ports"], Interface: ["name", "external_ids"] } as const;
  using database = new OvsdbClient({ address, monitored, timing: { connectMs: 2000 } });
  database.onState((state) => say(state));
  await database.ready(20_000);
  const made = new Transaction("make a bridge");
  insertBridge(made, { name: "br-int" });
  insertPort(made, "br-int", { name: "pod1", interface: { type: "internal", external_ids: { owner: "网络" } } });
  await database.transact(made);
  const row = await database.waitForRow("Interface", ({ name }) => name === "pod1", {
    timeoutMs: 5000,
    action: "see it",
  });
  say({ owner: row.external_ids.get("owner") });
  // Until the database has got its next port, by way of the next relay.
  const next = await database.waitForRow("Interface", ({ name }) => name === "pod2", {
    timeoutMs: 40_000,
    action: "see it",
  });
  say({ seen: next.name, ports: database.view.named("Bridge", "br-int")?.ports.size });
}

const [, , what, address = "", port = ""] = process.argv;
try {
  if (what === "relay") relay(address, Number(port), () => say("relays"));
  else await client(address);
} catch (caught) {
  writeFileSync(2, reasonOf(caught));
  process.exitCode = 1;
}
