import type { DebianPackage, Selection } from "./debian-files.ts";
import { searchPath, systemLayer } from "./linux-image.ts";
import { type Image, layerOf } from "./oci-layout.ts";
import type { Architecture } from "./package-source.ts";

/** Open vSwitch's daemons and its tools for people, with a shell that makes the database: Debian's, and nothing of ours. */

const daemon = "usr/lib/openvswitch-switch/ovs-vswitchd";

const tools = ["ovsdb-tool", "ovsdb-client", "ovs-appctl", "ovs-vsctl", "ovs-ofctl", "ovs-dpctl"];

export const openVswitch: Selection = {
  // The last two for the script of the chart's init container.
  packages: ["openvswitch-switch", "openvswitch-common", "dash", "coreutils"],
  files: [
    new RegExp(`^${daemon}$`),
    /^usr\/sbin\/ovsdb-server$/,
    ...[...tools, "dash", "sh", "mv", "rm"].map((name) => new RegExp(`^usr/bin/${name}$`)),
    /^usr\/share\/openvswitch\/vswitch\.ovsschema$/,
  ],
};

export function openVswitchImage(
  architecture: Architecture,
  packages: readonly DebianPackage[],
  about: Pick<Image, "created" | "annotations">,
): Image {
  return {
    ...about,
    os: "linux",
    architecture,
    // What Debian's alternatives would make a link of.
    layers: [layerOf(systemLayer(packages, { "usr/sbin/ovs-vswitchd": `/${daemon}` }))],
    config: { Cmd: ["ovs-vswitchd", "--version"], Env: [searchPath], WorkingDir: "/" },
  };
}
