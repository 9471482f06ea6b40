import { sameOwner } from "../../../../shared/cni/owner-key.ts";
import type { Owner } from "../../../../shared/cni/types.ts";
import { CniCode, CniError } from "../../../../shared/errors.ts";
import { insertPort, removePorts, Transaction, transactAndApply } from "../../../protocols/ovsdb/mod.ts";
import type { PodPort } from "../overlay-node.ts";
import { formatIdentity, ownerOf, parseIdentity } from "./port-identity.ts";
import {
  bridgeNamed,
  interfaceNamed,
  type PortRow,
  portNamed,
  portsOf,
  type SwitchDatabase,
} from "./switch-database.ts";

export interface PodRow {
  readonly row: PortRow;
  readonly owner: Owner;
  readonly port: PodPort | undefined;
}

interface Whose {
  readonly owner: Owner;
  readonly identity: ReturnType<typeof parseIdentity>;
}

/** The rows of pods' ports in the database of the switch. */
export class PodRows {
  readonly #db: SwitchDatabase;
  readonly #bridge: string;
  readonly #numbers = new PortNumbers();
  /** What rows say of themselves: one that changes comes as another object, and each ADD and DEL looks at all. */
  readonly #read = new WeakMap<PortRow, Whose | undefined>();

  constructor(db: SwitchDatabase, bridge: string) {
    this.#db = db;
    this.#bridge = bridge;
  }

  /** The pods' ports in the database; invalid fields are left out. */
  all(): readonly PodRow[] {
    return portsOf(this.#db.view, this.#bridge).flatMap((row) => {
      const whose = this.#whose(row);
      if (whose === undefined) return [];
      const { owner, identity } = whose;
      const port = identity === undefined ? undefined : { ...identity, port: row.name, ...this.#typeOf(row.name) };
      return [{ row, owner, port }];
    });
  }

  #whose(row: PortRow): Whose | undefined {
    if (!this.#read.has(row)) {
      const owner = ownerOf(row.external_ids);
      const identity = parseIdentity(row.external_ids);
      this.#read.set(row, owner === undefined ? undefined : { owner, identity });
    }
    return this.#read.get(row);
  }

  /** The owner of the port of this name; `undefined` if there is none, or it is no pod's. */
  ownerOf(name: string): Owner | undefined {
    const row = portNamed(this.#db.view, name);
    return row === undefined ? undefined : this.#whose(row)?.owner;
  }

  /** Whether the bridge has this pod's port. */
  has({ port, owner }: Pick<PodPort, "port" | "owner">): boolean {
    const row = portNamed(this.#db.view, port);
    if (row === undefined || bridgeNamed(this.#db.view, this.#bridge)?.ports.has(row._uuid) !== true) return false;
    const holder = this.#whose(row)?.owner;
    return holder !== undefined && sameOwner(holder, owner);
  }

  #typeOf(name: string): Pick<PodPort, "type"> {
    return interfaceNamed(this.#db.view, name)?.type === "internal" ? { type: "internal" } : {};
  }

  /** The number that the switch has given a port; `undefined` as long as there is none. */
  ofportOf(name: string): number | undefined {
    const { ofport } = interfaceNamed(this.#db.view, name) ?? {};
    return ofport === undefined || ofport < 0 ? undefined : ofport;
  }

  /** The number that a port has or is to get; for a new port the next one. 0: the switch chooses. */
  numberFor(name: string): number {
    const { ofport = -1, ofport_request: requested } = interfaceNamed(this.#db.view, name) ?? {};
    if (ofport >= 0) return ofport;
    return requested ?? this.#numbers.next(new Set([...this.#taken()]));
  }

  *#taken(): Iterable<number> {
    for (const { ofport, ofport_request: requested } of this.#db.view.rows("Interface").values()) {
      if (ofport !== undefined) yield ofport;
      if (requested !== undefined) yield requested;
    }
  }

  /** Why the switch could make no port. */
  problemOf(name: string): string | undefined {
    return interfaceNamed(this.#db.view, name)?.error;
  }

  /**
   * Creates or updates the row of this port. The row of an earlier device of the same name is deleted first, and the
   * switch has to release it, since it would keep the old device otherwise.
   * @param number of a new port; 0: as the switch likes
   * @throws {OvsdbError}
   * @throws {CniError} 102 where the name is taken by a port of somebody else
   */
  async put(port: PodPort, number: number): Promise<void> {
    const earlier = this.#earlier(port);
    if (earlier !== undefined) await transactAndApply(this.#db, earlier);
    const action = `add the port "${port.port}" of sandbox "${port.owner.sandboxId}"`;
    const transaction = new Transaction(action);
    const ids = formatIdentity(port);
    const standing = portNamed(this.#db.view, port.port);
    if (standing === undefined) {
      const type = port.type === undefined ? {} : { type: port.type };
      const own = { ...type, ...(number === 0 ? {} : { ofport_request: number }) };
      insertPort(transaction, this.#bridge, { name: port.port, interface: own, port: { external_ids: ids } });
    } else {
      const isSame = Object.entries(ids).every(([key, value]) => standing.external_ids.get(key) === value);
      const isTyped = port.type === undefined || this.#typeOf(port.port).type === port.type;
      if (!isTyped) transaction.update("Interface", [["name", "==", port.port]], { type: port.type });
      if (!isSame || standing.external_ids.size !== Object.keys(ids).length)
        transaction.update("Port", [["name", "==", port.port]], { external_ids: ids });
      if (transaction.steps.length === 0) return;
    }
    await this.#db.transact(transaction);
  }

  /** "Is not there" is success. @throws {OvsdbError} */
  async remove(owners: readonly Owner[], timeoutMs?: number): Promise<void> {
    const rows = this.all().filter(({ owner }) => owners.some((one) => sameOwner(one, owner)));
    await this.removeRows(rows, timeoutMs);
  }

  /** @throws {OvsdbError} */
  async removeRows(rows: readonly PodRow[], timeoutMs?: number): Promise<void> {
    if (rows.length === 0) return;
    const holders = new Set(rows.map(({ owner }) => `"${owner.sandboxId}"`));
    const transaction = new Transaction(`remove the ports of ${[...holders].join(", ")}`);
    removePorts(
      transaction,
      this.#bridge,
      rows.map(({ row }) => row._uuid),
    );
    await this.#db.transact(transaction, timeoutMs);
  }

  /** The removal of ports that are in the way; absent: there are none. @throws {CniError} as `put` */
  #earlier({ port, owner, device }: PodPort): Transaction | undefined {
    const named = portNamed(this.#db.view, port);
    const rows = this.all();
    if (named !== undefined && !rows.some(({ row }) => row._uuid === named._uuid)) throw nameTaken(port, owner);
    const earlier = rows.filter(({ row, owner: holder, port: standing }) => {
      if (row.name !== port) return sameOwner(holder, owner);
      return !sameOwner(holder, owner) || standing === undefined || standing.device !== device;
    });
    if (earlier.length === 0) return undefined;
    const transaction = new Transaction(`remove the earlier ports of "${owner.sandboxId}"`);
    removePorts(
      transaction,
      this.#bridge,
      earlier.map(({ row }) => row._uuid),
    );
    return transaction;
  }
}

const nameTaken = (port: string, { sandboxId }: Owner): CniError =>
  new CniError(
    CniCode.interfaceFailure,
    `Cannot add the port "${port}" of sandbox "${sandboxId}": Open vSwitch has a port of that name that is not ours`,
  );

/** Below the node's own ports, above those that the switch gives by itself. */
const first = 1024;
export const lastPodNumber = 32_767;

/**
 * Numbers for pods' ports, in sequence, so that the number of a removed port is not reused soon and flows that still
 * name it are harmless. Because the number is known in advance, flows can be added while the switch makes the port.
 */
export class PortNumbers {
  #given: number | undefined;

  /** @param taken those that ports have now. Answers 0, with which the switch chooses, if all are taken. */
  next(taken: ReadonlySet<number>): number {
    let number = this.#given;
    // Whose number was the last is asked for once, and whether all are taken where there are as many.
    if (number === undefined || taken.size > lastPodNumber - first) {
      const own = [...taken].filter((number) => number >= first && number <= lastPodNumber);
      if (own.length > lastPodNumber - first) return 0;
      number ??= Math.max(first - 1, ...own);
    }
    do number = number >= lastPodNumber ? first : number + 1;
    while (taken.has(number));
    this.#given = number;
    return number;
  }
}
