import type { HostRunner } from "./powershell.ts";
import type { Statement } from "./script.ts";
import { type IpInterface, sameName, Tables } from "./tables.ts";

const action = "look for the pods' adapters";
/** Adapters of one process, limited by the length of a command line. */
const maxAtOnce = 20;

/** Windows' name for the adapter of an HNS endpoint or an internal port. */
export const podAdapter = (endpoint: string): string => `vEthernet (${endpoint})`;

/**
 * Which of these endpoints have their adapter by now, in whatever compartment: it comes when the first container
 * starts. Answered ones have the MTU; one that refuses it does not affect the others.
 * @param mtu bytes
 * @throws {CniError} 102 where PowerShell says no to all of them; what is missing is none
 */
export async function startedPods(
  run: HostRunner,
  endpoints: readonly string[],
  mtu: number,
): Promise<ReadonlySet<string>> {
  const look = (first?: readonly Statement[]): Promise<Tables> => Tables.list(run, action, ["podInterfaces"], first);
  let seen = await look();
  const wrong = endpoints.filter((name) => interfacesOf(seen, name).length > 0 && !hasMtu(seen, name, mtu));
  let failure: unknown;
  for (let at = 0; at < wrong.length; at += maxAtOnce) {
    const batch = wrong.slice(at, at + maxAtOnce).map((name) => setMtu(podAdapter(name), mtu));
    try {
      seen = await look(batch);
    } catch (caught) {
      failure = caught;
    }
  }
  const started = endpoints.filter((name) => hasMtu(seen, name, mtu));
  if (started.length === 0 && failure !== undefined) throw failure;
  return new Set(started);
}

const interfacesOf = (seen: Tables, endpoint: string): readonly IpInterface[] =>
  seen.get("podInterfaces").filter((entry) => entry.family === 4 && sameName(entry.alias, podAdapter(endpoint)));

const hasMtu = (seen: Tables, endpoint: string, mtu: number): boolean => {
  const all = interfacesOf(seen, endpoint);
  return all.length > 0 && all.every((entry) => entry.mtu === mtu);
};

const setMtu = (alias: string, mtu: number): Statement => ({
  cmdlet: "Get-NetIPInterface",
  args: { IncludeAllCompartments: true },
  where: { InterfaceAlias: alias, AddressFamily: "IPv4" },
  // An adapter that disappears or refuses must not stop the others, so the MTU is read back afterwards.
  into: { cmdlet: "Set-NetIPInterface", args: { NlMtuBytes: mtu, ErrorAction: "SilentlyContinue" } },
});
