import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { Allocator } from "../../ipam/mod.ts";
import { formatIp } from "../../shared/net/ip.ts";
import { scratchDir } from "../support/scratch-dir.ts";

/** For tests: a data directory with a directory of host-local for the network `net` in it. */
export function hostLocalInScratch(files: Readonly<Record<string, string>> = {}) {
  const scratch = scratchDir();
  const dataDir = scratch.path;
  const directory = `${dataDir}/net`;
  mkdirSync(directory);
  const write = (more: Readonly<Record<string, string>>): void => {
    for (const [name, text] of Object.entries(more)) writeFileSync(`${directory}/${name}`, text);
  };
  write(files);
  return {
    dataDir,
    directory,
    write,
    open: () => Allocator.open(dataDir),
    [Symbol.dispose]: () => scratch[Symbol.dispose](),
  };
}

/** Every file of a directory with its text. */
export function filesIn(directory: string): Record<string, string> {
  const names = readdirSync(directory).sort();
  return Object.fromEntries(
    names.map((name) => {
      const path = `${directory}/${name}`;
      return [name, statSync(path).isFile() ? readFileSync(path, "utf8") : ""];
    }),
  );
}

/** Address, sandbox and interface of every lease, and its state where it is not allocated. */
export const leasesOf = (allocator: Allocator): readonly string[] =>
  allocator.list().map(({ address, owner, state }) => {
    const holder = `${formatIp(address.ip)} ${owner.sandboxId} ${owner.ifname || "any"}`;
    return state === "allocated" ? holder : `${holder} ${state}`;
  });
