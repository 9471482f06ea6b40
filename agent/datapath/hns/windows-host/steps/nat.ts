import { type Cidr, contains, formatCidr, parseCidr } from "../../../../../shared/net/ip.ts";
import type { Statement } from "../script.ts";
import { type Nat, sameName } from "../tables.ts";
import { blockOf } from "./routes.ts";
import { field, hostError, missing, type Step, there } from "./step.ts";

/**
 * Masquerades packets that leave the pod subnet. It is recognised by its configured name: one with another prefix is
 * created again; one of another name belongs to somebody else.
 */
export const nat: Step = {
  name: "nat",
  action: "make the NetNat for the pod subnet",
  tables: ["nats"],
  needed: (settings) => settings.natName !== "",
  wanted: ({ settings: { natName: name, podSubnet } }) => {
    if (podSubnet.ip.family !== 4)
      throw hostError(nat.action, `the pod subnet is ${formatCidr(podSubnet)}`, 'one of IPv4, or natName ""');
    return name === "" ? [] : [{ name, prefix: formatCidr(blockOf(podSubnet)) }];
  },
  judge: (thing, tables) => {
    const prefix = prefixOf(field(thing, "prefix"));
    const all = tables.get("nats");
    const foreign = all.find((entry) => !isNamed(entry, field(thing, "name")) && overlaps(entry.prefix, prefix));
    if (foreign?.prefix !== undefined) {
      const is = `NetNat "${foreign.name}" has ${formatCidr(foreign.prefix)}`;
      throw hostError(nat.action, is, `none for ${thing["prefix"]} but ours, "${thing["name"]}"`);
    }
    return all.some((entry) => isNamed(entry, field(thing, "name")) && isPrefix(entry, prefix)) ? there : missing();
  },
  make: (thing, tables) => {
    const [name, prefix] = [field(thing, "name"), field(thing, "prefix")];
    const old = tables.get("nats").some((entry) => isNamed(entry, name)) ? [removal(name)] : [];
    return [...old, { cmdlet: "New-NetNat", args: { Name: name, InternalIPInterfaceAddressPrefix: prefix } }];
  },
  undo: (thing, _before, tables) => {
    const [name, prefix] = [field(thing, "name"), prefixOf(field(thing, "prefix"))];
    return tables.get("nats").some((entry) => isNamed(entry, name) && isPrefix(entry, prefix)) ? [removal(name)] : [];
  },
  describe: (thing) => `NetNat "${thing["name"]}" for ${thing["prefix"]}`,
};

const removal = (name: string): Statement => ({
  cmdlet: "Get-NetNat",
  where: { Name: name },
  into: { cmdlet: "Remove-NetNat", args: { Confirm: false } },
});

function prefixOf(text: string): Cidr {
  const prefix = parseCidr(text);
  if (prefix === undefined) throw hostError(nat.action, `"prefix" on record is "${text}"`, "a block of addresses");
  return prefix;
}

const isNamed = (entry: Nat, name: string): boolean => sameName(entry.name, name);
const isPrefix = ({ prefix }: Nat, wanted: Cidr): boolean =>
  prefix !== undefined && formatCidr(prefix) === formatCidr(wanted);

/** Windows refuses overlapping prefixes of NetNats. */
const overlaps = (a: Cidr | undefined, b: Cidr): boolean => a !== undefined && (contains(a, b.ip) || contains(b, a.ip));
