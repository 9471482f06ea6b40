import { formatIp, type Ip } from "../../shared/net/ip.ts";
import type { NamedPort } from "../../shared/policy/mod.ts";
import { ipBytes, readIp } from "../../shared/proto/control-plane-addresses.ts";
import type { GroupMember } from "../../shared/proto/control-plane-messages.ts";

/** A pod of a group, as target or as peer. */
export interface Member {
  /** Of the pod and its addresses: a member with other addresses is another member. */
  readonly key: string;
  /** `namespace/name`. */
  readonly pod: string;
  readonly ips: readonly Ip[];
  readonly ports: readonly NamedPort[];
}

export const podKey = ({ namespace, name }: { readonly namespace: string; readonly name: string }): string =>
  `${namespace}/${name}`;

/** Members that are no pods belong to policies that are refused. @throws {WireError} */
export const readMembers = (messages: readonly GroupMember[]): Member[] =>
  messages.flatMap(({ pod, ips: addresses, ports }) => {
    if (pod === undefined) return [];
    const ips = addresses.map(readIp);
    return [{ key: [podKey(pod), ...ips.map(formatIp)].join(" "), pod: podKey(pod), ips, ports }];
  });

/** As it was read. */
export function memberMessage({ pod, ips, ports }: Member): GroupMember {
  const slash = pod.indexOf("/");
  return { pod: { namespace: pod.slice(0, slash), name: pod.slice(slash + 1) }, ips: ips.map(ipBytes), ports };
}
