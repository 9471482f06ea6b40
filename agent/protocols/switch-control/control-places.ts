import { readdir, readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { OvsdbAddress } from "../ovsdb/mod.ts";

/** Daemons of Open vSwitch that take commands. */
export type ControlledDaemon = "ovs-vswitchd" | "ovs-monitor-ipsec";
const pipeOfDatabase = /db\.sock$/;

/**
 * The control sockets of a daemon beside this database, in the daemons' common directory, the likeliest first;
 * none for a remote database.
 */
export async function controlPlaces(
  database: OvsdbAddress,
  daemon: ControlledDaemon = "ovs-vswitchd",
): Promise<readonly OvsdbAddress[]> {
  switch (database.t) {
    case "tcp":
      return [];
    case "pipe":
      // On Windows without the process id, and as a pipe of the path's name.
      return pipeOfDatabase.test(database.name)
        ? [{ t: "pipe", name: database.name.replace(pipeOfDatabase, `${daemon}.ctl`) }]
        : [];
    case "unix": {
      const directory = dirname(database.path);
      const running = await runningPid(join(directory, `${daemon}.pid`));
      // The name contains the process id, so that it differs from the socket of a killed process.
      const isSocket = (name: string): boolean =>
        name.startsWith(`${daemon}.`) && /^\d{1,10}\.ctl$/.test(name.slice(daemon.length + 1));
      const names = (await namesIn(directory)).filter(isSocket).sort();
      const first = names.filter((name) => name === `${daemon}.${running}.ctl`);
      return [...first, ...names.filter((name) => !first.includes(name))].map((name) => ({
        t: "unix",
        path: join(directory, name),
      }));
    }
  }
}

async function runningPid(file: string): Promise<string> {
  try {
    return (await readFile(file, "utf8")).trim();
  } catch {
    return "";
  }
}

async function namesIn(directory: string): Promise<readonly string[]> {
  try {
    return await readdir(directory);
  } catch {
    return [];
  }
}
