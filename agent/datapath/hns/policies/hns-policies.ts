import { KeyedMutex } from "../../../../shared/async/keyed-mutex.ts";
import { ownerKey } from "../../../../shared/cni/owner-key.ts";
import type { Owner } from "../../../../shared/cni/types.ts";
import { CniCode, CniError } from "../../../../shared/errors.ts";
import type { Logger } from "../../../../shared/log.ts";
import { type Ip, parseIp } from "../../../../shared/net/ip.ts";
import { reasonOf } from "../../../../shared/reason.ts";
import { type Hcn, type HcnDocument, type HcnEndpoint, HcnError } from "../../../protocols/hcn/mod.ts";
import type { NodePolicies, PolicyEnforcement, RefusedRule } from "../../policies.ts";
import { addressesIn } from "../documents.ts";
import type { EndpointListing } from "../endpoint-listing.ts";
import type { EndpointRecords } from "../endpoint-records.ts";
import { hnsError } from "../hns-errors.ts";
import { type Acl, aclText, overruling, ownAclTexts, withAcls } from "./acl.ts";
import { EndpointAcls, type PodRules, type RulePart, standingAcls } from "./endpoint-acls.ts";
import { priorities } from "./rule-acls.ts";

interface HnsPoliciesOptions {
  readonly hcn: Hcn;
  readonly listing: EndpointListing;
  readonly records: EndpointRecords;
  readonly logger: Logger;
  /** The addresses by which the node reaches the pods of a network. */
  nodeIps(network: string): readonly Ip[];
}

/** What an endpoint is to have. */
interface Wanted {
  readonly standing: readonly Acl[];
  readonly rules: PodRules;
}

/** Of which rules HNS has refused some, by the text of all that were to be in force then. */
interface Judged {
  readonly of: string;
  readonly taken: readonly RulePart[];
  readonly refused: readonly RefusedRule[];
}

/** Endpoints that are changed at a time: HNS serves ADD and DEL beside that. */
const changesAtATime = 2;
/** Calls that wait to change one endpoint: an ADD, a change of policies, the look at all. */
const longestQueue = 8;

const noRules: PodRules = { parts: [], refused: [] };
const aclsOf = (standing: readonly Acl[], parts: readonly RulePart[]): readonly Acl[] => [
  ...standing,
  ...parts.flatMap(({ acls }) => acls),
];

/**
 * Policies as ACLs of HNS' endpoints. Each change of an endpoint replaces all of its ACLs of ours in one request; what
 * it has by then is read from HNS. Before `enforce` is called for the first time there are none.
 */
export class HnsPolicies implements PolicyEnforcement {
  readonly #options: HnsPoliciesOptions;
  readonly #acls = new EndpointAcls();
  readonly #changes = new KeyedMutex(longestQueue);
  readonly #judged = new Map<string, Judged>();
  #wanted: NodePolicies | undefined;

  constructor(options: HnsPoliciesOptions) {
    this.#options = options;
  }

  async enforce(wanted: NodePolicies): Promise<readonly RefusedRule[]> {
    this.#wanted = wanted;
    await this.review();
    const refused = [...this.#acls.rulesOf(wanted).values(), ...this.#judged.values()].flatMap((each) => each.refused);
    return [...new Map(refused.filter(({ id }) => wanted.rules.has(id)).map((each) => [each.id, each])).values()];
  }

  /**
   * Puts in force what is wanted at all endpoints of ours that the last listing has shown; where nothing has ever been
   * wanted, an earlier agent's ACLs go.
   * @throws {CniError} once all have been tried
   */
  async review(): Promise<void> {
    const { records, listing } = this.#options;
    for (const id of this.#judged.keys()) if (listing.get(id) === undefined) this.#judged.delete(id);
    const errors: unknown[] = [];
    const left = records.all().values();
    const work = async (): Promise<void> => {
      for (const [id, { owner }] of left)
        try {
          const endpoint = listing.get(id);
          if (endpoint !== undefined && this.#needsChange(owner, endpoint)) await this.#change(owner, id);
        } catch (caught) {
          errors.push(caught);
        }
    };
    await Promise.all(Array.from({ length: changesAtATime }, work));
    if (errors.length > 0) throw hnsError("put network policies in force", errors[0]);
  }

  /**
   * With the ACLs that close an endpoint, for one that is to be made: what HNS might refuse of its rules must not keep
   * it from being made.
   */
  closed(owner: Owner, document: HcnDocument): HcnDocument {
    if (this.#wanted === undefined) return document;
    const own = addressesIn(document).flatMap((address) => parseIp(address) ?? []);
    const { standing } = this.#wantedOf(owner, own);
    return { ...document, Policies: withAcls(document, standing) };
  }

  /**
   * To be called before an endpoint enters its sandbox: what is wanted is in force there.
   * @param endpoint as just read
   */
  async cover(owner: Owner, endpoint: HcnEndpoint): Promise<void> {
    const { listing } = this.#options;
    // Of one that is listed something newer may be known.
    if (listing.get(endpoint.id) === undefined) listing.note(endpoint);
    if (this.#needsChange(owner, endpoint)) await this.#change(owner, endpoint.id);
  }

  /** HNS does not count what an ACL lets through. */
  async counts(): ReturnType<PolicyEnforcement["counts"]> {
    return { rules: [], denied: [] };
  }

  async differences(): Promise<readonly string[]> {
    const { listing, records } = this.#options;
    try {
      await listing.refresh();
    } catch (caught) {
      throw hnsError("compare the ACLs of the endpoints", caught);
    }
    return records.all().flatMap(([id, { owner }]): readonly string[] => {
      const endpoint = listing.get(id);
      if (endpoint === undefined) return [];
      const lacking = this.#lacking(owner, endpoint);
      const others = this.#wanted === undefined ? [] : overruling(endpoint.document, priorities.rest);
      return [
        ...(lacking.length === 0 ? [] : [`the endpoint "${endpoint.name}" differs in ${lacking.length} of its ACLs`]),
        ...others.map(
          (acl) => `the endpoint "${endpoint.name}" has an ACL of others that goes first: ${JSON.stringify(acl)}`,
        ),
      ];
    });
  }

  #wantedOf(owner: Owner, own: readonly Ip[]): Wanted {
    const wanted = this.#wanted;
    if (wanted === undefined) return { standing: [], rules: noRules };
    const isolation = wanted.isolated.get(ownerKey(owner));
    return {
      standing: standingAcls(isolation, own, this.#options.nodeIps(owner.network)),
      rules: this.#acls.rulesOf(wanted).get(ownerKey(owner)) ?? noRules,
    };
  }

  /** The rules of which HNS is not known to refuse them. */
  #takenBy(id: string, { standing, rules }: Wanted): readonly RulePart[] {
    const judged = this.#judged.get(id);
    if (judged === undefined) return rules.parts;
    if (judged.of === textOf(aclsOf(standing, rules.parts))) return judged.taken;
    this.#judged.delete(id);
    return rules.parts;
  }

  /** What a change that is under way leaves is not known yet. */
  #needsChange(owner: Owner, endpoint: HcnEndpoint): boolean {
    return this.#changes.isBusy(endpoint.id) || this.#lacking(owner, endpoint).length > 0;
  }

  /** ACLs that an endpoint lacks or has too many. */
  #lacking(owner: Owner, endpoint: HcnEndpoint): readonly string[] {
    const wanted = this.#wantedOf(owner, ipsOf(endpoint));
    return differing(endpoint, aclsOf(wanted.standing, this.#takenBy(endpoint.id, wanted)));
  }

  #change(owner: Owner, id: string): Promise<void> {
    return this.#changes.run(id, { what: `the change of ACLs at "${id}"` }, async () => {
      const endpoint = await this.#options.hcn.endpoint(id);
      if (endpoint === undefined) return;
      // As it is by now: others may have been here meanwhile.
      const wanted = this.#wantedOf(owner, ipsOf(endpoint));
      const parts = this.#takenBy(id, wanted);
      try {
        await this.#replace(endpoint, aclsOf(wanted.standing, parts));
      } catch (caught) {
        if (!isRefusal(caught)) throw caught;
        await this.#replaceOneByOne(endpoint, wanted);
      }
    });
  }

  /** @throws {CniError} 102 where HNS shows others afterwards */
  async #replace(endpoint: HcnEndpoint, acls: readonly Acl[]): Promise<void> {
    const { hcn, listing } = this.#options;
    const { id, document } = endpoint;
    if (differing(endpoint, acls).length > 0) {
      const Settings = { Policies: withAcls(document, acls) };
      await hcn.modifyEndpoint(id, { ResourceType: "Policy", RequestType: "Update", Settings });
    }
    const now = await hcn.endpoint(id);
    if (now === undefined) return;
    listing.note(now);
    const wrong = differing(now, acls);
    if (wrong.length === 0) return;
    const is = `HNS shows other ACLs at "${now.name}" than it was given, ${wrong.length} of them`;
    throw new CniError(CniCode.interfaceFailure, `Cannot put network policies in force: ${is}`);
  }

  /** To find the rules that HNS refuses, so that others are not concerned: those first that stand already. */
  async #replaceOneByOne(endpoint: HcnEndpoint, { standing, rules }: Wanted): Promise<void> {
    const has = ownAclTexts(endpoint.document);
    const stands = ({ acls }: RulePart): boolean => acls.every((acl) => has.has(aclText(acl)));
    const taken = rules.parts.filter(stands);
    const refused: RefusedRule[] = [];
    await this.#replace(endpoint, aclsOf(standing, taken));
    for (const part of rules.parts.filter((each) => !stands(each)))
      try {
        await this.#replace(endpoint, aclsOf(standing, [...taken, part]));
        taken.push(part);
      } catch (caught) {
        if (!isRefusal(caught)) throw caught;
        refused.push({ id: part.id, reason: reasonOf(caught) });
      }
    this.#judged.set(endpoint.id, { of: textOf(aclsOf(standing, rules.parts)), taken, refused });
    this.#options.logger.warn("HNS refuses rules of network policies", { endpoint: endpoint.name, refused });
  }
}

/** HNS has looked at it, and does not want it. */
const isRefusal = (caught: unknown): boolean =>
  caught instanceof HcnError && !caught.timedOut && !caught.isServiceAway && !caught.isAbsence;

const textOf = (acls: readonly Acl[]): string => acls.map(aclText).sort().join("\n");

function differing({ document }: HcnEndpoint, acls: readonly Acl[]): readonly string[] {
  const [has, wants] = [ownAclTexts(document), new Set(acls.map(aclText))];
  return [...has.symmetricDifference(wants)];
}

const ipsOf = ({ addresses }: HcnEndpoint): readonly Ip[] => addresses.flatMap(({ address }) => parseIp(address) ?? []);
