import { linkLocalOf } from "../../agent/datapath/addresses.ts";
import type { DataPath } from "../../agent/datapath/datapath.ts";
import { formatIp } from "../../shared/net/ip.ts";
import { bytes } from "../support/frames/frame.ts";
import type { Party } from "../support/frames/pod-frames.ts";
import { RawLink } from "../support/frames/raw-link.ts";
import { NetworkNamespace } from "../support/network-namespace.ts";
import type { NetworkSandbox } from "../support/network-sandbox.ts";
import { bridgeName, requestFor } from "./bridge-fixture.ts";

/** A pod on the bridge of `bridge-fixture.ts`, with a hand on its wire. */
export interface WiredPod extends Party {
  readonly netns: string;
  readonly host: string;
  readonly wire: RawLink;
}

export async function wirePod(
  sandbox: NetworkSandbox,
  dataPath: DataPath,
  name: string,
  number: number,
): Promise<WiredPod> {
  const netns = await sandbox.addPod();
  const { interfaces } = await dataPath.attach(requestFor(name, netns, number));
  const mac = interfaces[2]?.mac ?? "";
  return {
    netns,
    mac,
    host: interfaces[1]?.name ?? "",
    ip4: `10.77.0.${number}`,
    ip6: `fd77::${number}`,
    linkLocal: formatIp(linkLocalOf(mac)),
    wire: await wireOf(netns),
  };
}

export async function wireOf(netns: string, ifname = "eth0"): Promise<RawLink> {
  using namespace = NetworkNamespace.at(netns);
  return await RawLink.open(namespace, ifname);
}

/** The node itself, at its bridge. */
export async function gatewayOf(sandbox: NetworkSandbox): Promise<Party & { readonly wire: RawLink }> {
  const [link] = JSON.parse(await sandbox.node(`ip -j link show ${bridgeName}`)) as { address: string }[];
  const mac = link?.address ?? "";
  using here = NetworkNamespace.current();
  const wire = await RawLink.open(here, bridgeName);
  return { mac, ip4: "10.77.0.1", ip6: "fd77::1", linkLocal: formatIp(linkLocalOf(mac)), wire };
}

let marks = 0;

/** A frame that is known again by bytes behind what its headers count, which everybody passes on and nobody reads. */
export function marked(frame: Uint8Array): { readonly frame: Uint8Array; readonly mark: string } {
  const text = `mark ${String(++marks).padStart(6, "0")} `;
  return { frame: bytes(frame, new TextEncoder().encode(text)), mark: text };
}

/** Which of the marks have come to a wire since the last look. */
export function marksAt(wire: RawLink): ReadonlySet<string> {
  const found = wire.received().flatMap(
    (frame) =>
      Buffer.from(frame)
        .toString("latin1")
        .match(/mark \d{6} /g) ?? [],
  );
  return new Set(found);
}
