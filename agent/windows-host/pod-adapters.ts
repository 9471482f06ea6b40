import type { HostRunner } from "./runner.ts";
import type { Statement } from "./script.ts";
import { type IpInterface, sameName, Tables } from "./tables.ts";

const action = "look for the pods' adapters";
/** Of one look: what Windows takes as one command line has room for so many. */
const mostAtOnce = 20;

/** What Windows calls the adapter of an HNS endpoint, or of an internal port. */
export const podAdapter = (endpoint: string): string => `vEthernet (${endpoint})`;

/**
 * Which of these endpoints have their adapter by now, in whatever compartment: it comes when the first container
 * starts. Each one that is answered has the MTU.
 * @param mtu bytes
 * @throws {CniError} 102 where PowerShell says no; what is missing is none
 */
export async function startedPods(
  run: HostRunner,
  endpoints: readonly string[],
  mtu: number,
): Promise<ReadonlySet<string>> {
  const look = (first?: readonly Statement[]): Promise<Tables> => Tables.list(run, action, ["podInterfaces"], first);
  let seen = await look();
  const there = endpoints.filter((name) => interfacesOf(seen, name).length > 0).slice(0, mostAtOnce);
  const wrong = there.filter((name) => !hasMtu(seen, name, mtu));
  if (wrong.length > 0) seen = await look(wrong.map((name) => setMtu(podAdapter(name), mtu)));
  return new Set(there.filter((name) => hasMtu(seen, name, mtu)));
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
  into: { cmdlet: "Set-NetIPInterface", args: { NlMtuBytes: mtu } },
});
