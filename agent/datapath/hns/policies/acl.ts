import { isObject } from "../../../../shared/schema/json-fields.ts";
import type { HcnDocument } from "../../../protocols/hcn/mod.ts";

/** The settings of a policy of type ACL (V2). What is left out, but for the priority, matches anything. */
export type Acl = {
  /** Of all that come from one NetworkPolicy the same. */
  readonly Id: string;
  readonly Action: "Allow" | "Block";
  /** As the pod sees it. */
  readonly Direction: "In" | "Out";
  /** `Switch`: in the switch. `Host`: past the node's own firewall. */
  readonly RuleType: "Switch" | "Host";
  /** Lower goes first. Rules of the host have none. */
  readonly Priority?: number;
  /** IANA's number. */
  readonly Protocols?: string;
  /** Blocks, with commas between them, as are ports. */
  readonly RemoteAddresses?: string;
  readonly LocalPorts?: string;
  readonly RemotePorts?: string;
};

/** By which ours are told from those of the configuration, of HNS itself, and of other programs. */
const ownPrefix = "pipette-";
/** A name of Kubernetes may be as long as that; how much HNS takes is not known. */
const longestId = 128;

export const aclId = (...of: readonly string[]): string => `${ownPrefix}${of.join("-")}`.slice(0, longestId);

const settingsOf = ({ Type, Settings }: HcnDocument): HcnDocument | undefined =>
  Type === "ACL" && isObject(Settings) ? Settings : undefined;

const isOwn = (policy: HcnDocument): boolean => String(settingsOf(policy)?.["Id"] ?? "").startsWith(ownPrefix);

const policiesOf = ({ Policies }: HcnDocument): readonly HcnDocument[] =>
  Array.isArray(Policies) ? Policies.filter(isObject) : [];

/** The policies of an endpoint, with these ACLs in place of those that it has of ours. */
export const withAcls = (document: HcnDocument, acls: readonly Acl[]): readonly HcnDocument[] => [
  ...policiesOf(document).filter((policy) => !isOwn(policy)),
  ...acls.map((Settings) => ({ Type: "ACL", Settings })),
];

/** Those of ours that an endpoint has, each as a text that is the same however HNS writes it down. */
export const ownAclTexts = (document: HcnDocument): ReadonlySet<string> =>
  new Set(policiesOf(document).flatMap((policy) => (isOwn(policy) ? aclText(settingsOf(policy) ?? {}) : [])));

/** Any protocol, as HNS shows it. */
const anyProtocol = "256";

const listText = (value: unknown): string =>
  String(value ?? "")
    .split(",")
    .map((each) => each.trim().replace(/\/32$/, ""))
    .sort()
    .join();

export function aclText(settings: HcnDocument): string {
  const { Id, Action, Direction, RuleType, Priority, Protocols } = settings;
  const { RemoteAddresses, LocalAddresses, LocalPorts, RemotePorts } = settings;
  const lists = [RemoteAddresses, LocalAddresses, LocalPorts, RemotePorts].map(listText);
  const protocols = String(Protocols ?? "") || anyProtocol;
  // What HNS has given to a rule without a priority says nothing.
  const priority = RuleType === "Host" ? "" : Priority;
  return [Id, Action, Direction, RuleType, priority, protocols, ...lists].join(" ");
}

/** ACLs of others that let through what ours refuse, because they go first. @param last the priority of our last ones */
export const overruling = (document: HcnDocument, last: number): readonly HcnDocument[] =>
  policiesOf(document).flatMap((policy) => {
    const settings = isOwn(policy) ? undefined : settingsOf(policy);
    if (settings === undefined || settings["Action"] === "Block" || settings["RuleType"] === "Host") return [];
    return Number(settings["Priority"] ?? 0) <= last ? [settings] : [];
  });
