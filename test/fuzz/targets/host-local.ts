import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseIpamConfig } from "../../../ipam/config/ipam-config.ts";
import { describeImport, importHostLocal } from "../../../ipam/host-local/import.ts";
import { Fields, isObject } from "../../../shared/schema/json-fields.ts";
import { allocatorInMemory, ownerOf } from "../../fakes/allocator-in-memory.ts";
import type { Opened, Target } from "../engine/target.ts";
import { jsonMutator } from "../mutate/json.ts";
import { jsonOf, requireCniError, requireHarmless } from "./words.ts";

const words = [
  ...["lock", "last_reserved_ip.0", "last_reserved_ip.1", "last_reserved_ip.99", "10.1.0.2", "10.1.0.3", "fd00::2"],
  ...["fd00__2", "10.01.0.2", "::ffff:10.1.0.2", "a1\r\neth0", "a1", "a1\neth0", "a1\r\neth0\r\nx", "\r\n", ".", ".."],
];

const conf = new Fields({ ipam: { ranges: [[{ subnet: "10.1.0.0/28" }], [{ subnet: "fd00::/124" }]] } });
const config = parseIpamConfig({ conf, network: "net", version: "1.0.0", args: "" });

/** `{"10.1.0.2": "a1\r\neth0", "name of a directory": null, "name of a link": ["where it leads"]}`. */
function fill(directory: string, files: Readonly<Record<string, unknown>>): void {
  for (const [name, content] of Object.entries(files).slice(0, 40)) {
    try {
      const path = join(directory, name);
      if (name.includes("/")) continue;
      if (content === null) mkdirSync(path);
      else if (Array.isArray(content)) symlinkSync(String(content[0] ?? "lock"), path);
      else writeFileSync(path, typeof content === "string" ? content : JSON.stringify(content));
    } catch {
      // No name that a file can have.
    }
  }
}

async function takeOver(directory: string): Promise<void> {
  const { allocator } = allocatorInMemory();
  const options = { directory, network: "net", config };
  const first = await importHostLocal(allocator, options);
  for (const line of describeImport(first)) requireHarmless(line, "a line about the take-over");
  // What is in use there is given to nobody here.
  const held = allocator.list("net").length;
  const given = allocator.list("net").map(({ address }) => `${address.ip.value}`);
  // By names that no file has: the container of a file keeps its address.
  for (const id of ["newcomer-1", "newcomer-2"]) {
    try {
      const { leases } = allocator.allocate(ownerOf(id), config);
      for (const { address } of leases)
        if (given.includes(`${address.ip.value}`))
          throw new Error("An address that host-local gave out was given out again");
    } catch (caught) {
      requireCniError(caught);
    }
  }
  const second = await importHostLocal(allocator, options);
  if (second.taken !== 0) throw new Error(`${second.taken} leases were taken over for the second time, of ${held}`);
}

function openDirectory(): Opened {
  const root = mkdtempSync(join(tmpdir(), "pipette-fuzz-host-local-"));
  const directory = join(root, "net");
  return {
    run: async (input) => {
      const files = jsonOf(input);
      rmSync(directory, { recursive: true, force: true });
      mkdirSync(directory);
      fill(directory, isObject(files) ? files : { "10.1.0.2": new TextDecoder().decode(input) });
      try {
        await takeOver(directory);
      } catch (caught) {
        requireCniError(caught);
      }
    },
    close: () => rmSync(root, { recursive: true, force: true }),
  };
}

export const hostLocal: Target = {
  name: "host-local",
  what: "directories of host-local",
  mutators: [jsonMutator(words)],
  dictionary: words,
  maxBytes: 8 * 1024,
  open: openDirectory,
};
