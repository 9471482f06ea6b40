import { rmSync } from "node:fs";
import { join } from "node:path";
import { readBootId } from "../../../../ipam/mod.ts";
import { type Cidr, formatCidr, parseCidr } from "../../../../shared/net/ip.ts";
import { readSmallFile } from "../../../../shared/os/plain-file.ts";
import { parseJson } from "../../../../shared/schema/json.ts";
import { misfit, type Shape } from "../../../config/yaml-shape.ts";
import { writeAtomically } from "../../../platform/atomic-file.ts";
import {
  addRouteBy,
  Errno,
  isRefusal,
  type Link,
  type NetlinkSocket,
  setLink,
  type WholeRoute,
} from "../../../protocols/netlink/mod.ts";
import { addGateway, addressesOf } from "../../linux/gateway.ts";
import { findLink } from "../../linux/host-links.ts";
import { isLinkLocal, routesBy } from "./uplink.ts";

/** The node's own addresses and routes, as they were on the bridge. */
interface UplinkRecord {
  /** What configures interfaces at a boot does it then; its addresses may be others. */
  readonly bootId: string;
  readonly uplink: string;
  /** The bridge's own device: another one of its name has nothing of what this one had. */
  readonly bridgeIndex: number;
  readonly addresses: readonly Cidr[];
  readonly routes: readonly WholeRoute[];
}

const text: Shape = { t: "string", wanted: "text" };
const base64: Shape = {
  t: "string",
  wanted: "bytes",
  wrong: (value) => (/^[A-Za-z0-9+/]*={0,2}$/.test(value) ? undefined : "none"),
};
const block: Shape = {
  t: "string",
  wanted: "an address with its prefix length",
  wrong: (value) => (parseCidr(value) === undefined ? "none" : undefined),
};
const fileShape: Shape = {
  t: "map",
  required: ["version", "bootId", "uplink", "bridgeIndex", "addresses", "routes"],
  keys: {
    version: { t: "integer", least: 1, most: 1 },
    bootId: text,
    uplink: text,
    bridgeIndex: { t: "integer", least: 1, most: 0x7fff_ffff },
    addresses: { t: "list", of: block, least: 0, most: 1_000 },
    routes: {
      t: "list",
      least: 0,
      most: 10_000,
      of: {
        t: "map",
        required: ["dst", "header", "attributes"],
        keys: {
          dst: block,
          header: base64,
          attributes: {
            t: "list",
            least: 0,
            most: 100,
            of: {
              t: "map",
              required: ["type", "value"],
              keys: { type: { t: "integer", least: 0, most: 0xffff }, value: base64 },
            },
          },
        },
      },
    },
  },
};

interface Content extends Pick<UplinkRecord, "bootId" | "uplink" | "bridgeIndex"> {
  readonly addresses: readonly string[];
  readonly routes: readonly {
    readonly dst: string;
    readonly header: string;
    readonly attributes: readonly { readonly type: number; readonly value: string }[];
  }[];
}

const headerBytes = 12;

/** Ten thousand routes take a quarter of it. */
const mostBytes = 16 * 1024 * 1024;

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
    const content: Content = {
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
    writeAtomically(this.#path, `${JSON.stringify({ version: 1, ...content })}\n`);
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
      if (refusal !== undefined && !isRefusal(refusal, Errno.EEXIST)) throw refusal;
    }
    return missing;
  }

  /** The node's addresses are the uplink's again. */
  forget(): void {
    rmSync(this.#path, { force: true });
  }

  #read(): UplinkRecord | undefined {
    try {
      const value = parseJson(readSmallFile(this.#path, mostBytes));
      // A later release may have noted more.
      if (misfit(value, fileShape, "ignored") !== undefined) return undefined;
      const { bootId, uplink, bridgeIndex, addresses, routes } = value as Content;
      const read = routes.flatMap(({ dst, header, attributes }) => {
        const cidr = parseCidr(dst);
        const bytes = fromText(header);
        const all = new Map(attributes.map((one) => [one.type, fromText(one.value)]));
        const route = { isConfigured: true, indexes: [], header: bytes, attributes: all };
        return cidr === undefined || bytes.length !== headerBytes ? [] : [{ dst: cidr, ...route }];
      });
      const cidrs = addresses.map(parseCidr).filter((cidr) => cidr !== undefined);
      return { bootId, uplink, bridgeIndex, addresses: cidrs, routes: read };
    } catch {
      // None, or none that can be read: then nothing is known, as before there was a bridge.
      return undefined;
    }
  }
}

const toText = (bytes: Uint8Array): string => Buffer.from(bytes).toString("base64");
const fromText = (value: string): Uint8Array => new Uint8Array(Buffer.from(value, "base64"));
