import type { PodPeer, Selector } from "../../shared/policy/mod.ts";

/** Which pods a group has: those of one namespace, or of all namespaces that a selector matches. */
export type GroupSelector = {
  /** Absent: all pods there. */
  readonly pods?: Selector;
} & ({ readonly namespace: string } | { readonly namespaces: Selector });

export const groupOf = (
  namespace: string,
  { namespaces, pods }: Pick<PodPeer, "namespaces" | "pods">,
): GroupSelector => ({
  ...(namespaces === undefined ? { namespace } : { namespaces }),
  ...(pods === undefined ? {} : { pods }),
});

/** The same text as Antrea's controller makes of the same selectors: groups of one text are one group. */
export function textOf(selector: GroupSelector): string {
  const scope =
    "namespace" in selector ? `namespace=${selector.namespace}` : `namespaceSelector=${selector.namespaces.text}`;
  return selector.pods === undefined ? scope : `${scope} And podSelector=${selector.pods.text}`;
}

/** Antrea's namespace of UUIDs, e4f24a48-ca1f-4d5b-819c-ea7632b22115. */
const namespaceBytes = Uint8Array.fromHex("e4f24a48ca1f4d5b819cea7632b22115");

/** The name of a group: a UUID of version 5 (RFC 9562) of its text, so that every controller gives the same names. */
export function nameOf(text: string): string {
  const bytes = new Bun.CryptoHasher("sha1").update(namespaceBytes).update(text).digest();
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x50;
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  const hex = bytes.subarray(0, 16).toHex();
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}
