import { rmSync } from "node:fs";
import { join } from "node:path";
import { readBootId } from "../../../../ipam/mod.ts";
import { type Cidr, formatCidr, parseCidr } from "../../../../shared/net/ip.ts";

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

import { writeAtomically } from "../../../platform/atomic-file.ts";
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
  // What configures interfaces at a boot does it then; its addresses may be others.
  bootId: required(anyText),
  uplink: required(anyText),
  // The bridge's own device: another one of its name has nothing of what this one had.
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
 * What the node has on its bridge because its uplink is a port of that. A bridge that is deleted takes along what is on
 * it, and nobody else knows it: so it is noted in the data directory, and put back from there.
 */
export class UplinkNotes {
  readonly #path: string;

  constructor(dataDir: string) {
    this.#path = join(dataDir, "uplink.json");
  }

  /** @throws {CniError | NetlinkError} */
  note(socket: NetlinkSocket, uplink: string, bridge: Link): void {
    const addresses = addressesOf(socket, bridge).filter((address) => !isLinkLocal(address));
    // Nothing may have come yet; what is gone for good is gone with its boot.
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
   * Puts back onto the uplink what went with a bridge that is no more; from there it is moved as it was at first. A
   * family that has an address again, by whomever, is left alone. May be repeated.
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
    // Also those that are on the bridge again: the routes here need them here until they are moved.
    for (const address of addresses) addGateway(socket, link, address);
    // Those that gateways are reached by come before those by way of gateways.
    const routes = record.routes.filter(({ dst }) => isBare(dst)).toSorted((a, b) => b.dst.prefix - a.dst.prefix);
    for (const route of routes) {
      const [refusal] = socket.batch([addRouteBy(route, link.index)]);
      if (refusal !== undefined && !isErrno(refusal, Errno.EEXIST)) throw refusal;
    }
    return missing;
  }

  /** The node's addresses are the uplink's again. */
  forget(): void {
    rmSync(this.#path, { force: true });
  }

  /** Nothing where there is no record, or none that can be read: then nothing is known, as before there was a bridge. */
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
