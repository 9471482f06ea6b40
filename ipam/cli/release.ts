import { formatIp, sameIp } from "../../shared/net/ip.ts";
import { defineCommand } from "../../shared/terminal/command.ts";
import { exitStatus } from "../../shared/terminal/exit-status.ts";
import { formatJson, printable } from "../../shared/terminal/printable.ts";
import type { Allocator } from "../allocator.ts";
import { readBootId } from "../allocator-env.ts";
import type { Lease } from "../lease.ts";
import { containerOption, ifnameOption, usualIfname } from "./allocate.ts";
import { leaseTable, leaseView, podText } from "./lease-view.ts";
import {
  confOption,
  dataDirOption,
  jsonOption,
  namesOf,
  networkOption,
  openAllocator,
  scopeOf,
  unknownNetwork,
} from "./scope.ts";
import { addressIn } from "./show.ts";

const action = "release addresses";

export const release = defineCommand({
  action,
  about: `Takes back the addresses of one attachment: all of them, since they were given together. They cool before they
are given again.

With --container it is named as a DEL of the runtime names it. With ADDRESS its owner is looked up first, and what
is taken back is that very lease and no later one; where the owner may be alive --force is wanted: its address would
be given to another pod while it still uses it. Interfaces are not touched.`,
  operands: [{ name: "ADDRESS", of: namesOf("addresses"), help: "an address of the attachment", optional: true }],
  options: {
    container: { ...containerOption, of: namesOf("sandboxes") },
    ifname: ifnameOption,
    conf: confOption,
    network: networkOption,
    force: { help: "also where the owner may be alive, or its interface may stand" },
    json: jsonOption,
    "data-dir": dataDirOption,
  },
  exits: {
    1: "failed, or --force is wanted",
    3: "there is no such lease or network, or no database",
    4: "leases of several networks fit; they are listed",
  },
  run: async ({ options, operands: [address] }, io) => {
    const { container, ifname = usualIfname } = options;
    const ip = address === undefined ? undefined : addressIn(address);
    const wrong = wrongTarget(address, ip !== undefined, container);
    if (wrong !== undefined) {
      io.stderr(printable(`Cannot ${action}: ${wrong}`).concat("\n"));
      return exitStatus.wrongArguments;
    }
    const scope = await scopeOf(options, io);
    const { network } = scope;
    const unknown = await unknownNetwork(scope, action, io);
    if (unknown !== undefined) return unknown;
    using allocator = await openAllocator(scope.dataDir, action, io);
    if (allocator === undefined) return exitStatus.notThere;
    const named = leasesWhere(allocator, network, ({ owner, address: held }) =>
      ip === undefined ? owner.sandboxId === container && owner.ifname === ifname : sameIp(held.ip, ip),
    );
    const what = address === undefined ? `sandbox "${container}" (${ifname})` : `"${address}"`;
    const refused = named.length === 0 ? exitStatus.notThere : isSeveral(named) ? exitStatus.several : undefined;
    if (refused !== undefined) {
      const is = named.length === 0 ? `${what} has no lease` : `${what} has leases in several networks`;
      io.stderr(printable(`Cannot ${action}: ${is}, wanted one attachment; --network NAME chooses`).concat("\n"));
      if (named.length > 0) io.stderr(leaseTable(named, Date.now()));
      return refused;
    }
    // The owner of a cooling address has left it and may hold another one since, which must not be released.
    const leases = ip === undefined || named[0]?.state !== "cooling" ? attachmentOf(allocator, named[0]) : [];
    const bootId = await readBootId();
    const held =
      options.force || container !== undefined ? undefined : leases.find((lease) => mayBeUsed(lease, bootId));
    if (held !== undefined) {
      io.stderr(`${printable(`Cannot ${action}: ${reasonOf(held)}, wanted --force`)}\n`);
      return exitStatus.failed;
    }
    const released = leases.filter((lease) => takeBack(allocator, lease));
    const now = attachmentOf(allocator, named[0]).filter((lease) =>
      released.some(({ generation }) => generation === lease.generation),
    );
    if (options.json) io.stdout(formatJson({ released: now.map(leaseView) }));
    else if (now.length > 0) io.stdout(`Released; cooling from now:\n${leaseTable(now, Date.now())}`);
    else io.stdout(`${printable(what)} was released before, nothing was changed\n`);
    return exitStatus.done;
  },
});

function wrongTarget(
  address: string | undefined,
  isAddress: boolean,
  container: string | undefined,
): string | undefined {
  if (address !== undefined && container !== undefined)
    return `"${address}" and --container are both there, wanted one of them`;
  if (address === undefined && container === undefined) return "nothing says which, wanted ADDRESS or --container ID";
  return address !== undefined && !isAddress ? `"${address}" is no address, wanted one such as 10.1.2.3` : undefined;
}

const isSeveral = (leases: readonly Lease[]): boolean => new Set(leases.map(({ owner }) => owner.network)).size > 1;

/** In any state. */
const attachmentOf = (allocator: Allocator, lease: Lease | undefined): readonly Lease[] =>
  lease === undefined
    ? []
    : leasesWhere(
        allocator,
        lease.owner.network,
        ({ owner }) => owner.sandboxId === lease.owner.sandboxId && owner.ifname === lease.owner.ifname,
      );

/** Page by page, so that a search in very many leases takes little memory. */
const leasesWhere = (
  allocator: Allocator,
  network: string | undefined,
  fits: (lease: Lease) => boolean,
): readonly Lease[] => [...allocator.pages(network).flatMap((page) => page.filter(fits))];

/** No sandbox survives a reboot, and one whose lease is cooling has gone. */
const mayBeUsed = ({ state, bootId }: Lease, current: string): boolean =>
  state === "releasing" || (state === "allocated" && (bootId === "" || current === "" || bootId === current));

function reasonOf(lease: Lease): string {
  const pod = podText(lease);
  const holder = `sandbox "${lease.owner.sandboxId}" (${lease.owner.ifname})${pod === undefined ? "" : ` of pod "${pod}"`}`;
  const address = `"${formatIp(lease.address.ip)}" (generation ${lease.generation})`;
  return lease.state === "releasing"
    ? `${address} of ${holder} waits for the agent to take its interface away`
    : `${address} belongs to ${holder}, which may be alive`;
}

const takeBack = (allocator: Allocator, lease: Lease): boolean =>
  lease.state === "allocated"
    ? allocator.reclaim(lease, "cooling")
    : lease.state === "releasing" && allocator.finishRelease(lease);
