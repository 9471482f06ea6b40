import { join } from "node:path";
import { isWindows } from "../../shared/os/platform.ts";
import { defaulted, type Findings, integer, object, oneOf, optional, section } from "../../shared/schema/mod.ts";
import { deviceName } from "./values.ts";

/** How packets between pods of two nodes are encrypted (`docs/encryption.md`). */
export const encryptionKinds = ["none", "wireguard"] as const;
export type EncryptionKind = (typeof encryptionKinds)[number];

/** The node's private key. */
export const wireguardKeyFile = (dataDir: string): string => join(dataDir, "wireguard.key");

const mostHours = 8760;

const wireguardSchema = object({
  port: defaulted(integer(1, 65_535), 51_820, "the UDP port of every node"),
  device: defaulted(deviceName, "pipette-wg0", "name of the device"),
  rotateHours: optional(integer(1, mostHours), "after how long a node takes a new key", "never"),
});

/** Keys of the section `ovs`. */
export const encryptionKeys = {
  encryption: defaulted(
    oneOf(encryptionKinds),
    "none",
    "how packets between pods of two nodes are [encrypted](encryption.md)",
  ),
  wireguard: section(wireguardSchema, "for `encryption: wireguard`"),
};

/** As far as encryption depends on them. */
interface Written {
  readonly encryption: EncryptionKind;
  readonly mode: string;
  readonly tenants: string;
  readonly clusterSubnets?: readonly unknown[] | undefined;
  readonly wireguard: { readonly device: string; readonly rotateHours?: number | undefined };
}

/**
 * Finds what cannot be kept from leaving in clear.
 * @param registry its type; absent: the node is alone
 */
export function checkEncryption(ovs: Written, registry: string | undefined, findings: Findings): void {
  const { encryption, mode, tenants, clusterSubnets, wireguard } = ovs;
  if (encryption === "none") return;
  const at = ["ovs", "encryption"];
  const refuse = (is: string, wanted: string): void => findings.add(at, `"${encryption}" ${is}, wanted ${wanted}`);
  if (isWindows) refuse("on Windows", '"none": there is no counterpart');
  if (mode !== "encap") refuse(`with mode "${mode}"`, 'mode "encap", in which all packets between pods are encrypted');
  if (tenants === "multitenant")
    refuse(
      'with tenants "multitenant"',
      '"flat" or "networkpolicy": without a tunnel nothing carries whose a packet is',
    );
  if (registry === "static" && wireguard.rotateHours !== undefined)
    refuse('with "wireguard.rotateHours" and a file of nodes', "none of it: keys in a file change by hand");
  if (registry !== "etcd" && (clusterSubnets === undefined || clusterSubnets.length === 0))
    refuse('without "clusterSubnets"', "them: the networks of all pods, of which nothing leaves in clear");
}
