import {
  type AddressGroup,
  addressMember,
  type Changes,
  type ComputedPolicy,
  groupMessage,
  policyMessage,
} from "../policy/mod.ts";
import { addressGroupKind, networkPolicyKind } from "./api-kind.ts";
import { WatchEvent } from "./watch-event.ts";

/** Of kept encodings: what one node is told at its start serves the next one, when a thousand begin to follow at once. */
const maxKeptBytes = 128 * 1024 * 1024;

/** Policies and address groups as a whole: the same for each node that gets them, so encoded once until they change. */
export class AddedEvents {
  readonly #kept = new Map<AddressGroup | ComputedPolicy, WatchEvent>();
  #bytes = 0;

  addressGroup(group: AddressGroup): WatchEvent {
    return this.#keptOr(group, () =>
      WatchEvent.of("ADDED", "addressgroups", addressGroupKind, () =>
        groupMessage(group.name, group.members(), addressMember),
      ),
    );
  }

  policy(policy: ComputedPolicy): WatchEvent {
    return this.#keptOr(policy, () =>
      WatchEvent.of("ADDED", "networkpolicies", networkPolicyKind, () => policyMessage(policy)),
    );
  }

  forget({ addressGroups, policies }: Changes): void {
    for (const { group } of addressGroups) this.#drop(group);
    for (const { t, policy } of policies) if (t === "deleted") this.#drop(policy);
  }

  #drop(key: AddressGroup | ComputedPolicy): void {
    const event = this.#kept.get(key);
    if (event === undefined) return;
    this.#kept.delete(key);
    this.#bytes -= event.bytes;
  }

  #keptOr(key: AddressGroup | ComputedPolicy, make: () => WatchEvent): WatchEvent {
    const there = this.#kept.get(key);
    if (there !== undefined) return there;
    const made = make();
    // Those that are asked for are soon there again.
    if (this.#bytes > maxKeptBytes) this.#clear();
    this.#kept.set(key, made);
    made.onEncoded = (bytes) => {
      if (this.#kept.get(key) === made) this.#bytes += bytes;
    };
    return made;
  }

  #clear(): void {
    this.#kept.clear();
    this.#bytes = 0;
  }
}
