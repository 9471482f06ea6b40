import { ApiClient, type ClusterAccess } from "../../shared/kubernetes/mod.ts";
import { Patience } from "../../shared/kubernetes/transport.ts";
import {
  ComputedPod,
  decodeObject,
  GroupMember,
  GroupMessage,
  GroupPatch,
  NetworkPolicyMessage,
} from "../../shared/proto/control-plane-messages.ts";
import { bytes, message, nested, text } from "../../shared/proto/wire.ts";

const Event = message({ type: text(1), object: nested(2, message({ raw: bytes(1) })) });

/** Everything of one kind that a node knows, by name. */
type Members = Map<string, GroupMember>;

/** What a node has heard over the wire, as strict with it as an agent must be. */
export class WireView {
  readonly policies = new Map<string, NetworkPolicyMessage>();
  readonly appliedToGroups = new Map<string, Members>();
  readonly addressGroups = new Map<string, Members>();
  readonly pods = new Map<string, string>();
  /** Annotations of the bookmark; absent before it has come. */
  bookmark: Readonly<Record<string, string>> | undefined;
  events = 0;
  /** Whether it is of the ordered watch, where nothing is named before it is there. */
  isOrdered = true;
  #rest = new Uint8Array(0);

  /** Any piece of the stream. */
  read(chunk: Uint8Array): void {
    let data = new Uint8Array([...this.#rest, ...chunk]);
    while (data.length >= 4) {
      const length = 4 + new DataView(data.buffer, data.byteOffset).getUint32(0);
      if (data.length < length) break;
      const { type, object } = Event.decode(data.subarray(4, length));
      this.apply(type, object?.raw ?? new Uint8Array(0));
      data = data.slice(length);
    }
    this.#rest = data;
  }

  apply(type: string, object: Uint8Array): void {
    this.events++;
    const { kind, raw } = decodeObject(object);
    if (type === "BOOKMARK") this.#bookmark(NetworkPolicyMessage.decode(raw));
    else if (kind.endsWith("Patch")) this.#patch(kind, GroupPatch.decode(raw));
    else this.#change(type, kind, raw);
  }

  #change(type: string, kind: string, raw: Uint8Array): void {
    const places = {
      NetworkPolicy: this.policies,
      ComputedPod: this.pods,
      AddressGroup: this.addressGroups,
      AppliedToGroup: this.appliedToGroups,
    };
    const place = places[kind as keyof typeof places] as Map<string, unknown>;
    const { metadata } = ComputedPod.decode(raw);
    const name = kind === "ComputedPod" ? `${metadata.namespace}/${metadata.name}` : metadata.name;
    const is = place.has(name);
    if (is !== (type !== "ADDED")) throw new Error(`${type} of ${kind} "${name}", which is ${is ? "" : "not "}there`);
    if (type === "DELETED") place.delete(name);
    else if (kind === "ComputedPod") this.pods.set(name, metadata.uid);
    else if (kind === "NetworkPolicy") this.policies.set(name, this.#complete(NetworkPolicyMessage.decode(raw)));
    else place.set(name, membersOf(GroupMessage.decode(raw).members));
  }

  /** To be compared with `expectedState`. */
  get state(): unknown {
    return stateOf(this.policies.values(), this.appliedToGroups, this.addressGroups, this.pods);
  }

  #bookmark({ metadata }: NetworkPolicyMessage): void {
    if (this.bookmark !== undefined) throw new Error("a second bookmark");
    if (metadata.resourceVersion === "") throw new Error("a bookmark without a version");
    this.bookmark = Object.fromEntries(metadata.annotations.map(({ key, value }) => [key, value]));
  }

  /** Nothing may be open between two events: what a policy names is there before it. */
  #complete(policy: NetworkPolicyMessage): NetworkPolicyMessage {
    if (!this.isOrdered) return policy;
    for (const name of policy.appliedToGroups)
      if (!this.appliedToGroups.has(name)) throw new Error(`a policy before its AppliedToGroup "${name}"`);
    for (const name of policy.rules.flatMap(({ from, to }) => [...from.addressGroups, ...to.addressGroups]))
      if (!this.addressGroups.has(name)) throw new Error(`a policy before its AddressGroup "${name}"`);
    return policy;
  }

  #patch(kind: string, { metadata, added, removed }: GroupPatch): void {
    const place = kind === "AddressGroupPatch" ? this.addressGroups : this.appliedToGroups;
    const group = place.get(metadata.name);
    if (group === undefined) throw new Error(`a patch of "${metadata.name}", which is not there`);
    if (added.length + removed.length === 0) throw new Error("an empty patch");
    for (const [key, member] of membersOf(added)) group.set(key, member);
    for (const key of membersOf(removed).keys())
      if (!group.delete(key)) throw new Error(`"${key}" is removed from "${metadata.name}", and was no member`);
  }
}

const keyOf = ({ pod, ips }: GroupMember): string =>
  [`${pod?.namespace}/${pod?.name}`, ...ips.map((ip) => new Uint8Array(ip).toHex())].join(" ");

export const membersOf = (members: Iterable<GroupMember>): Members =>
  new Map([...members].map((member) => [keyOf(member), member]));

export function stateOf(
  policies: Iterable<NetworkPolicyMessage>,
  appliedToGroups: ReadonlyMap<string, Members>,
  addressGroups: ReadonlyMap<string, Members>,
  pods: ReadonlyMap<string, string>,
): unknown {
  const inOrder = (entries: Iterable<readonly [string, unknown]>): unknown =>
    [...entries].sort(([a], [b]) => (a < b ? -1 : 1));
  // As bytes, which are the same whatever order the fields of an object were set in.
  const groups = (of: ReadonlyMap<string, Members>): unknown =>
    inOrder(
      [...of].map(([name, members]) => [
        name,
        inOrder([...members].map(([key, member]) => [key, GroupMember.encode(member).toHex()])),
      ]),
    );
  return {
    policies: inOrder([...policies].map((each) => [each.metadata.name, NetworkPolicyMessage.encode(each).toHex()])),
    appliedToGroups: groups(appliedToGroups),
    addressGroups: groups(addressGroups),
    pods: inOrder(pods),
  };
}

/** The project's own client, as the agent has it. */
export function clientOf(server: string, ca: string, token: string): ApiClient {
  const access: ClusterAccess = {
    server,
    tls: async () => ({ ca }),
    credentials: { authorization: async () => `Bearer ${token}`, renew: async () => false },
  };
  return new ApiClient(access);
}

export const orderedPath = (node: string): string =>
  `/apis/controlplane.pipette.io/v1/nodepolicies?fieldSelector=nodeName%3D${node}&watch=true`;

/** Longer than any test. */
const longestMs = 600_000;

/** A node that follows the ordered watch, until it is disposed of. */
export class WatchingNode implements AsyncDisposable {
  readonly view = new WireView();
  readonly #client: ApiClient;
  readonly #leaving = new AbortController();
  readonly #reading: Promise<void>;
  /** Why it follows no more. */
  failure: unknown;
  isOver = false;

  constructor(server: string, ca: string, node: string, path = orderedPath(node), token = `node-${node}`) {
    this.#client = clientOf(server, ca, token);
    this.#reading = this.#follow(path);
  }

  async #follow(path: string): Promise<void> {
    using patience = new Patience();
    const accept = "application/vnd.kubernetes.protobuf";
    const ask = { path, action: "follow", accept, signal: this.#leaving.signal };
    try {
      const answer = await this.#client.stream(ask, patience, longestMs);
      patience.last(longestMs, "was silent");
      for await (const chunk of answer.body) this.view.read(chunk);
    } catch (caught) {
      this.failure = caught;
    } finally {
      this.isOver = true;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#leaving.abort(new Error("it leaves"));
    await this.#reading;
    await this.#client[Symbol.asyncDispose]();
  }
}
