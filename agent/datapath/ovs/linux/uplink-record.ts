import { rmSync } from "node:fs";
import { join } from "node:path";
import { readBootId } from "../../../../ipam/mod.ts";
import { type Cidr, formatCidr, parseCidr } from "../../../../shared/net/ip.ts";
import { writeAtomically } from "../../../../shared/os/atomic-file.ts";
import {
  anyText,
  type Infer,
  integer,
  list,
  object,
  readRecord,
  required,
  text,
} from "../../../../shared/schema/mod.ts";
import {
  addRouteBy,
  Errno,
  isErrno,
  type Link,
  type NetlinkSocket,
  setLink,
  type WholeRoute,
} from "../../../protocols/netlink/mod.ts";
import { addGateway, addressesOf } from "../../linux/gateway.ts";
import { findLink } from "../../linux/host-links.ts";
import { isLinkLocal, routesBy } from "./uplink.ts";

const headerBytes = 12;

const bytes = text("bytes (base64)", (given) => (/^[A-Za-z0-9+/]*={0,2}$/.test(given) ? fromText(given) : undefined));
const addressWithPrefix = text("an address with its prefix length", parseCidr);

/** The node's own addresses and routes, as they were on the bridge. */
const recordSchema = object({
  version: required(integer(1, 1)),
  // Only valid in this boot: at the next one the system configures the interface itself, perhaps with other addresses.
  bootId: required(anyText),
  uplink: required(anyText),
  // The index of the bridge's device: a new device of the same name has lost the addresses.
  bridgeIndex: required(integer(1, 0x7fff_ffff)),
  addresses: required(list(addressWithPrefix, 0, 1_000)),
  routes: required(
    list(
      object({
        dst: required(addressWithPrefix),
        header: required(bytes),
        attributes: required(list(object({ type: required(integer(0, 0xffff)), value: required(bytes) }), 0, 100)),
      }),
      0,
      10_000,
    ),
  ),
});

type UplinkRecord = Omit<Infer<typeof recordSchema>, "version" | "routes"> & { readonly routes: readonly WholeRoute[] };

/**
 * The node's addresses and routes on the bridge whose port is its uplink. If the bridge is deleted they are lost, so
 * they are recorded in the data directory and restored from there.
 */
export class UplinkNotes {
  readonly #path: string;

  constructor(dataDir: string) {
    this.#path = join(dataDir, "uplink.json");
  }

  /** @throws {CniError | NetlinkError} */
  note(socket: NetlinkSocket, uplink: string, bridge: Link): void {
    const addresses = addressesOf(socket, bridge).filter((address) => !isLinkLocal(address));
    // Keeps the last record if there are no addresses yet; a record ends with its boot.
    if (addresses.length === 0) return;
    const content = {
      version: 1,
      bootId: readBootId(),
      uplink,
      bridgeIndex: bridge.index,
      addresses: addresses.map(formatCidr),
      routes: routesBy(socket, bridge)
        .filter(({ indexes }) => indexes.length === 1)
        .map(({ dst, header, attributes }) => ({
          dst: formatCidr(dst),
          header: toText(header),
          attributes: [...attributes].map(([type, value]) => ({ type, value: toText(value) })),
        })),
    };
    writeAtomically(this.#path, `${JSON.stringify(content)}\n`);
  }

  /**
   * Restores on the uplink what was lost with a deleted bridge; from there it is moved to the new bridge as at first. A
   * family that has an address again is left alone. May be repeated.
   * @returns the addresses that were missing
   * @throws {NetlinkError}
   */
  restore(socket: NetlinkSocket, uplink: string, bridge: string): readonly Cidr[] {
    const record = this.#read();
    const [link, standing] = [findLink(socket, { name: uplink }), findLink(socket, { name: bridge })];
    if (record === undefined || link === undefined) return [];
    if (record.uplink !== uplink || record.bootId !== readBootId() || record.bridgeIndex === standing?.index) return [];
    const present = [link, standing].flatMap((one) => (one === undefined ? [] : addressesOf(socket, one)));
    const others = present.filter(
      (address) => !isLinkLocal(address) && !record.addresses.some((own) => formatCidr(own) === formatCidr(address)),
    );
    const isBare = ({ ip }: Cidr): boolean => !others.some((address) => address.ip.family === ip.family);
    const addresses = record.addresses.filter(isBare);
    const missing = addresses.filter((own) => !present.some((address) => formatCidr(own) === formatCidr(address)));
    if (!link.up) socket.run(setLink(link.name, link.index, { up: true }));
    // Also addresses that are on the bridge already, because the routes on the uplink need them until they are moved.
    for (const address of addresses) addGateway(socket, link, address);
    // On-link routes first, because routes through gateways need them.
    const routes = record.routes.filter(({ dst }) => isBare(dst)).toSorted((a, b) => b.dst.prefix - a.dst.prefix);
    for (const route of routes) {
      const [refusal] = socket.batch([addRouteBy(route, link.index)]);
      if (refusal !== undefined && !isErrno(refusal, Errno.EEXIST)) throw refusal;
    }
    return missing;
  }

  /** Forgets the record, once the addresses are back on the uplink. */
  forget(): void {
    rmSync(this.#path, { force: true });
  }

  /** Nothing if there is no readable record. */
  #read(): UplinkRecord | undefined {
    const read = readRecord(this.#path, recordSchema);
    if (read.t !== "ok") return undefined;
    const routes = read.value.routes
      .filter(({ header }) => header.length === headerBytes)
      .map(({ dst, header, attributes }) => ({
        dst,
        header,
        isConfigured: true,
        indexes: [],
        attributes: new Map(attributes.map(({ type, value }) => [type, value])),
      }));
    return { ...read.value, routes };
  }
}

const toText = (bytes: Uint8Array): string => Buffer.from(bytes).toString("base64");
const fromText = (value: string): Uint8Array => new Uint8Array(Buffer.from(value, "base64"));
