import { executables, type WinePrefix } from "./wine/prefix.ts";
import type { Ended, Program, ProgramOptions } from "./wine/program.ts";

/** Calls of `pipette-ipam.exe` for one network. */
export class IpamCalls {
  readonly #prefix: WinePrefix;
  readonly #conf: Readonly<Record<string, unknown>>;

  /** @param ipam keys of the `ipam` section, such as `dataDir` as Windows writes it */
  constructor(prefix: WinePrefix, ipam: Readonly<Record<string, unknown>>) {
    this.#prefix = prefix;
    this.#conf = { cniVersion: "1.1.0", name: "net", type: "pipette-ipam", ipam: { type: "pipette-ipam", ...ipam } };
  }

  start(verb: string, containerId: string, keys: Readonly<Record<string, unknown>> = {}): Program {
    const env = {
      CNI_COMMAND: verb,
      CNI_CONTAINERID: containerId,
      CNI_NETNS: "none",
      CNI_IFNAME: "eth0",
      CNI_PATH: "C:\\cni\\bin",
    };
    const stdin = JSON.stringify({ ...this.#conf, ...keys });
    return this.#prefix.start(`${executables}/pipette-ipam.exe`, { env, stdin });
  }

  run(verb: string, containerId: string, keys: Readonly<Record<string, unknown>> = {}): Promise<Ended> {
    return this.start(verb, containerId, keys).ended;
  }

  /** A verb that must succeed. */
  async must(verb: string, containerId: string, keys: Readonly<Record<string, unknown>> = {}): Promise<Ended> {
    const ended = await this.run(verb, containerId, keys);
    if (ended.status === 0) return ended;
    throw new Error(`Cannot run ${verb} for "${containerId}": status ${ended.status}, ${ended.stdout}${ended.stderr}`);
  }

  /** The addresses of an ADD that must succeed. */
  async add(containerId: string): Promise<string> {
    return addressesOf(await this.must("ADD", containerId));
  }
}

export const addressesOf = ({ stdout }: Ended): string =>
  (JSON.parse(stdout).ips as { address: string }[]).map(({ address }) => address.replace(/\/.*/, "")).join(" ");

/** `pipette ipam …` at a terminal of Windows. */
export function terminal(prefix: WinePrefix, args: readonly string[], options: ProgramOptions = {}): Promise<Ended> {
  return prefix.run(`${executables}/pipette.exe`, { ...options, args: ["ipam", ...args] });
}

/** The leases as a process of Windows sees them: `address state sandbox`, sorted by address. */
export async function leases(prefix: WinePrefix, dataDir: string): Promise<readonly string[]> {
  const { stdout, stderr } = await terminal(prefix, ["list", "--data-dir", dataDir, "--json"]);
  try {
    const list = JSON.parse(stdout) as { address: string; state: string; containerId: string }[];
    return list.map(({ address, state, containerId }) => `${address} ${state} ${containerId}`);
  } catch {
    throw new Error(`Cannot list the leases: ${stdout}${stderr}`);
  }
}
