import { join } from "node:path";
import { isWindows } from "../../shared/os/platform.ts";
import {
  boolean,
  defaulted,
  type Findings,
  integer,
  object,
  oneOf,
  optional,
  section,
} from "../../shared/schema/mod.ts";
import { certificatesSchema } from "./certificates-config.ts";
import { deviceName, path } from "./values.ts";

/** How packets between pods of two nodes are encrypted (`docs/encryption.md`). */
export const encryptionKinds = ["none", "ipsec", "wireguard"] as const;
export type EncryptionKind = (typeof encryptionKinds)[number];

/** The node's private key. */
export const wireguardKeyFile = (dataDir: string): string => join(dataDir, "wireguard.key");

/** Its time stamp says until when that was certainly used. */
export const wireguardUseFile = (dataDir: string): string => join(dataDir, "wireguard.used");

const mostHours = 8760;

const wireguardSchema = object({
  port: defaulted(integer(1, 65_535), 51_820, "the UDP port of every node"),
  device: defaulted(deviceName, "pipette-wg0", "name of the device"),
  rotateHours: optional(integer(1, mostHours), "after how long a node takes a new key", "never"),
});

/** Who encrypts by IPsec: the node's kernel, or strongSwan itself (its plugin kernel-libipsec) where the kernel cannot. */
export const espKinds = ["kernel", "userspace"] as const;
export type EspKind = (typeof espKinds)[number];

const ipsecSchema = object({
  pskFile: optional(path, "a file with the secret of all nodes", "the variable `PIPETTE_IPSEC_PSK`"),
  certificates: optional(certificatesSchema, "by which nodes know each other, in place of a secret"),
  esp: defaulted(
    oneOf(espKinds),
    "kernel",
    "who encrypts: the node's kernel, or strongSwan itself by its plugin kernel-libipsec",
  ),
  forceUdp: defaulted(
    boolean,
    false,
    "whether packets go in UDP 4500 also where no addresses are translated on the way",
  ),
  charon: defaulted(path, "/run/charon.enfy", "where strongSwan tells its errors, by its plugin error-notify"),
});

/** Keys of the section `ovs`. */
export const encryptionKeys = {
  encryption: defaulted(
    oneOf(encryptionKinds),
    "none",
    "how packets between pods of two nodes are [encrypted](encryption.md)",
  ),
  ipsec: section(ipsecSchema, "for `encryption: ipsec`"),
  wireguard: section(wireguardSchema, "for `encryption: wireguard`"),
};

/** As far as encryption depends on them. */
interface Written {
  readonly encryption: EncryptionKind;
  readonly mode: string;
  readonly tenants: string;
  readonly tunnel: string;
  readonly tunnelPort?: number | undefined;
  readonly clusterSubnets?: readonly unknown[] | undefined;
  readonly ipsec: { readonly pskFile?: string | undefined; readonly certificates?: object | undefined };
  readonly wireguard: { readonly device: string; readonly rotateHours?: number | undefined };
}

/**
 * Finds what cannot be kept from leaving in clear.
 * @param registry its type; absent: the node is alone
 */
export function checkEncryption(
  ovs: Written,
  { dataPath, registry }: { readonly dataPath: string; readonly registry: string | undefined },
  findings: Findings,
): void {
  const { encryption, mode, tenants, clusterSubnets, wireguard } = ovs;
  if (encryption === "none") return;
  const at = ["ovs", "encryption"];
  const refuse = (is: string, wanted: string): void => findings.add(at, `"${encryption}" ${is}, wanted ${wanted}`);
  if (isWindows) refuse("on Windows", '"none": there is no counterpart');
  // The rest of the section may stand there for other nodes; this would be taken for encryption.
  if (dataPath === "bridge") refuse('with dataPath "bridge"', '"none": a kernel bridge sends in clear');
  if (mode !== "encap") refuse(`with mode "${mode}"`, 'mode "encap", in which all packets between pods are encrypted');
  if (encryption === "ipsec") {
    checkTunnel(ovs, findings);
    if (ovs.ipsec.pskFile !== undefined && ovs.ipsec.certificates !== undefined)
      findings.add(
        ["ovs", "ipsec"],
        'with "pskFile" and "certificates", wanted one of them: nodes know each other by one',
      );
  }
  if (encryption === "wireguard" && tenants === "multitenant")
    refuse(
      'with tenants "multitenant"',
      '"flat" or "networkpolicy": without a tunnel nothing carries whose a packet is',
    );
  if (encryption === "wireguard" && registry === "static" && wireguard.rotateHours !== undefined)
    refuse('with "wireguard.rotateHours" and a file of nodes', "none of it: keys in a file change by hand");
  if (registry !== "etcd" && (clusterSubnets === undefined || clusterSubnets.length === 0))
    refuse('without "clusterSubnets"', "them: the networks of all pods, of which nothing leaves in clear");
}

/** Those that ovs-monitor-ipsec protects, each at this port alone: another one would leave in clear without a word. */
const protectedPorts: Readonly<Record<string, number | undefined>> = { geneve: 6081, vxlan: 4789, gre: undefined };

function checkTunnel({ tunnel, tunnelPort }: Written, findings: Findings): void {
  const refuse = (key: string, is: string, wanted: string): void =>
    findings.add(["ovs", key], `${is} with encryption "ipsec", wanted ${wanted}`);
  if (!(tunnel in protectedPorts)) {
    refuse("tunnel", `"${tunnel}"`, '"geneve", "vxlan" or "gre"');
    return;
  }
  const port = protectedPorts[tunnel];
  if (tunnelPort !== undefined && tunnelPort !== port)
    refuse("tunnelPort", `${tunnelPort}`, `${port ?? "none"}: what is sent to another one is not encrypted`);
}
