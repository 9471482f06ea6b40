import { nextTurn } from "../../../../shared/async/next-turn.ts";
import { type Family, formatIp } from "../../../../shared/net/ip.ts";
import {
  addElements,
  appendRule,
  clearChain,
  createChain,
  deleteChain,
  deleteElements,
  type Element,
  Errno,
  isErrno,
  listElements,
  listRules,
  type Message,
  type NetlinkSocket,
  type PacketSet,
  readChainOfRule,
  readElements,
  type Table,
} from "../../../protocols/netlink/mod.ts";
import { elementMessages, elementName, unlessMissing } from "../../linux/set-elements.ts";
import type { RefusedService, ServicePort } from "../../services.ts";
import { type Choice, ownListFrom } from "./choice.ts";
import { choiceRules } from "./service-chains.ts";
import {
  elementsOf,
  entrancesOf,
  type ServiceElement,
  type Slots,
  slotsFound,
  slotsName,
  slotsOf,
} from "./service-elements.ts";
import { type Entrances, filledSets, type ServiceSets, serviceSets } from "./service-sets.ts";

/** A service as the kernel has it. */
interface InForce {
  /** As it is wanted. */
  readonly wanted: ServicePort;
  /** Without what another service has; absent: nothing of it is. */
  readonly granted: ServicePort | undefined;
  readonly reason?: string;
  readonly slots: Slots;
}

/** A service before and after, each as far as it is in force. */
export interface ServiceChange {
  readonly before: ServicePort | undefined;
  readonly after: ServicePort | undefined;
}

interface Step {
  /** One after the other, all of them. */
  readonly transactions: readonly (readonly Message[])[];
  readonly changes: readonly ServiceChange[];
}

/** A way of choosing that stands as a chain. */
interface StandingChoice {
  readonly entrances: Entrances;
  readonly choice: Choice;
  /** Entrances that lead there. */
  users: number;
}

/** What an earlier agent has left, and no service has taken over yet. */
interface Found {
  readonly elements: Map<string, Element>;
  /** By the names of their lists, what slots hold. */
  readonly slots: ReadonlyMap<string, readonly string[]>;
  /** Chains with rules. */
  readonly chains: readonly string[];
}

/** Of one turn of the event loop: a few milliseconds' work. */
const servicesPerTurn = 200;

const noSlots: Slots = { internal: [], cluster: [], external: [] };

/**
 * What the kernel has of services, and how that becomes something else. It is noted before the kernel is asked: whoever
 * is refused a step has to begin with a new one of these, which takes over what then stands.
 */
export class StandingServices {
  readonly #socket: NetlinkSocket;
  readonly #table: Table;
  readonly #isWhole: boolean;
  readonly #sets: Readonly<Record<Family, ServiceSets>>;
  readonly #services = new Map<string, InForce>();
  /** By address and port of an entrance which service has it. */
  readonly #claims = new Map<string, string>();
  readonly #choices = new Map<string, StandingChoice>();
  #found: Found | undefined;

  private constructor(socket: NetlinkSocket, table: Table, isWhole: boolean) {
    this.#socket = socket;
    this.#table = table;
    this.#isWhole = isWhole;
    this.#sets = { 4: serviceSets(table, 4), 6: serviceSets(table, 6) };
  }

  /**
   * With what an earlier agent has left.
   * @param socket to read by, for packet filters and for this alone
   * @param frame chains that stand whatever services there are
   * @throws {NetlinkError}
   */
  static async read(
    socket: NetlinkSocket,
    table: Table,
    isWhole: boolean,
    frame: ReadonlySet<string>,
  ): Promise<StandingServices> {
    const standing = new StandingServices(socket, table, isWhole);
    standing.#found = await standing.#take(frame);
    return standing;
  }

  refused(): readonly RefusedService[] {
    return [...this.#services].flatMap(([key, { reason }]) => (reason === undefined ? [] : [{ key, reason }]));
  }

  /**
   * Steps that lead to these services, each to be carried out before the next is asked for; one can stop behind any.
   * @param maxElements of one, unless a service has more
   */
  *stepsTo(wanted: ReadonlyMap<string, ServicePort>, maxElements: number): Generator<Step> {
    yield* this.#sweep();
    let step = new StepDraft();
    const changed = [...this.#services.keys()].filter((key) => !wanted.has(key));
    for (const [key, port] of wanted) {
      const before = this.#services.get(key);
      if (before?.wanted !== port || before.reason !== undefined) changed.push(key);
    }
    for (const key of this.#turns(changed)) {
      this.#replace(key, wanted.get(key), step);
      // Those that stand already cost time, too.
      if (step.size < maxElements && step.changes.length < servicesPerTurn) continue;
      yield step.done();
      step = new StepDraft();
    }
    if (this.#found !== undefined) {
      // Set by set, and so what leads packets before where it leads them.
      for (const [name, element] of this.#found.elements) {
        this.#found.elements.delete(name);
        step.gone.push(element);
        if (step.size < maxElements) continue;
        yield step.done();
        step = new StepDraft();
      }
      step.last.push(...this.#strangers(this.#found));
      this.#found = undefined;
    }
    if (step.size > 0) yield step.done();
  }

  /** At the end those once more that have waited for what others have given up meanwhile. */
  *#turns(changed: readonly string[]): Generator<string> {
    yield* changed;
    yield* changed.filter((key) => this.#services.get(key)?.reason !== undefined);
  }

  /** What the kernel has otherwise, in sentences. No services may be changed meanwhile. @throws {NetlinkError} */
  async differences(): Promise<readonly string[]> {
    const wanted = await this.#wantedElements();
    const found: string[] = [];
    for (const set of Object.values(this.#sets).flatMap(filledSets))
      found.push(...(await this.#differencesIn(set, wanted.get(set.name) ?? new Map())));
    const chains = this.#ruleCounts();
    for (const [name, { entrances, choice }] of this.#choices) {
      const [is, should] = [chains.get(name) ?? 0, this.#choiceRules(entrances, choice).length];
      if (is !== should) found.push(`the chain "${name}" has ${is} rules, wanted ${should}`);
    }
    return found;
  }

  /** By the names of their maps, and their own. */
  async #wantedElements(): Promise<ReadonlyMap<string, ReadonlyMap<string, Element>>> {
    const wanted = new Map<string, Map<string, Element>>();
    let looked = 0;
    for (const { granted, slots } of this.#services.values()) {
      for (const element of this.#elementsOf(granted, slots)) {
        const own = wanted.get(element.set.name) ?? new Map<string, Element>();
        wanted.set(element.set.name, own.set(elementName(element), element));
      }
      if (++looked % servicesPerTurn === 0) await nextTurn();
    }
    return wanted;
  }

  async #differencesIn(set: PacketSet, wanted: ReadonlyMap<string, Element>): Promise<readonly string[]> {
    let [standing, lacking] = [0, wanted.size];
    await this.#elementsIn(set, (element) => {
      standing++;
      const should = wanted.get(elementName(element));
      if (should !== undefined && isSame(element, should)) lacking--;
    });
    if (lacking === 0 && standing === wanted.size) return [];
    return [`the map "${set.name}" has ${standing} elements, and ${lacking} of ${wanted.size} wanted are not there`];
  }

  #replace(key: string, wanted: ServicePort | undefined, step: StepDraft): void {
    const before = this.#services.get(key);
    this.#release(key, before?.granted);
    const { granted, reason } = wanted === undefined ? {} : this.#grant(key, wanted);
    const slots = granted === undefined ? noSlots : this.#slotsOf(granted, before);
    const had = new Map(this.#elementsOf(before?.granted, before?.slots).map((each) => [elementName(each), each]));
    for (const element of had.values()) this.#use(element, -1, step);
    for (const element of this.#elementsOf(granted, slots)) {
      const name = elementName(element);
      const standing = had.get(name) ?? this.#found?.elements.get(name);
      had.delete(name);
      this.#found?.elements.delete(name);
      this.#use(element, 1, step);
      if (standing !== undefined && isSame(standing, element)) continue;
      if (standing !== undefined) step.gone.push(standing);
      step.come.push(element);
    }
    step.gone.push(...had.values());
    step.changes.push({ before: before?.granted, after: granted });
    if (wanted === undefined) this.#services.delete(key);
    else this.#services.set(key, { wanted, granted, slots, ...(reason === undefined ? {} : { reason }) });
  }

  /** What the service may have of what it wants: of two services with the same address and port the first has it. */
  #grant(key: string, wanted: ServicePort): { readonly granted?: ServicePort; readonly reason?: string } {
    const taken = entrancesOf(wanted, this.#isWhole).flatMap((entrance) => {
      const holder = this.#claims.get(claimOf(wanted, entrance));
      return holder === undefined ? [] : [{ ...entrance, holder }];
    });
    const [first] = taken;
    const isFree = (ip: ServicePort["clusterIp"]): boolean =>
      !taken.some((each) => each.ip !== undefined && formatIp(each.ip) === formatIp(ip));
    const { nodePort, ...others } = wanted;
    const keepsNodePort = nodePort !== undefined && taken.every(({ ip }) => ip !== undefined);
    const granted = taken.some(({ isClusterIp }) => isClusterIp)
      ? undefined
      : first === undefined
        ? wanted
        : {
            ...others,
            ...(keepsNodePort ? { nodePort } : {}),
            externalIps: wanted.externalIps.filter(isFree),
            ingressIps: wanted.ingressIps.filter(isFree),
          };
    if (granted !== undefined)
      for (const entrance of entrancesOf(granted, this.#isWhole)) this.#claims.set(claimOf(granted, entrance), key);
    const what = taken.map(({ ip, port }) => (ip === undefined ? `node port ${port}` : `${formatIp(ip)} port ${port}`));
    return {
      ...(granted === undefined ? {} : { granted }),
      ...(first === undefined ? {} : { reason: `${what.join(", ")} belongs to the service "${first.holder}"` }),
    };
  }

  #release(key: string, granted: ServicePort | undefined): void {
    if (granted === undefined) return;
    for (const entrance of entrancesOf(granted, this.#isWhole)) {
      const claim = claimOf(granted, entrance);
      if (this.#claims.get(claim) === key) this.#claims.delete(claim);
    }
  }

  #slotsOf(port: ServicePort, before: InForce | undefined): Slots {
    const found = this.#found?.slots ?? new Map<string, readonly string[]>();
    return slotsOf(port, this.#isWhole, before?.slots ?? slotsFound(port, this.#isWhole, this.#sets, found));
  }

  #elementsOf(port: ServicePort | undefined, slots: Slots = noSlots): readonly ServiceElement[] {
    return port === undefined ? [] : elementsOf(port, slots, this.#sets, this.#isWhole);
  }

  /** Notes that an entrance leads to its choice, or no longer does. */
  #use({ chain: name, leads }: ServiceElement, by: 1 | -1, step: StepDraft): void {
    if (leads === undefined || name === undefined) return;
    const standing = this.#choices.get(name);
    if (standing !== undefined) {
      standing.users += by;
      return;
    }
    const { entrances, choice } = leads;
    this.#choices.set(name, { entrances, choice, users: by });
    step.first.push(createChain(this.#table, name), clearChain(this.#table, name));
    step.first.push(...this.#choiceRules(entrances, choice).map(appendRule));
  }

  #choiceRules(entrances: Entrances, choice: Choice): ReturnType<typeof choiceRules> {
    return choiceRules(this.#table, entrances, choice);
  }

  /** Choices that nobody has used since the last change: a packet that was held up in the middle has passed by now. */
  *#sweep(): Generator<Step> {
    const unused = [...this.#choices].filter(([, { users }]) => users === 0);
    if (unused.length === 0) return;
    for (const [name] of unused) this.#choices.delete(name);
    yield { transactions: [unused.flatMap(([name]) => this.#withoutChain(name))], changes: [] };
  }

  /** An earlier agent's choices, and chains of another release. */
  #strangers({ chains }: Found): readonly Message[] {
    return chains.filter((name) => !this.#choices.has(name)).flatMap((name) => this.#withoutChain(name));
  }

  #withoutChain(name: string): readonly Message[] {
    return [clearChain(this.#table, name), deleteChain(this.#table, name)];
  }

  async #take(frame: ReadonlySet<string>): Promise<Found> {
    const elements = new Map<string, Element>();
    const slots = new Map<string, string[]>();
    for (const sets of Object.values(this.#sets))
      for (const set of filledSets(sets))
        await this.#elementsIn(set, (element) => {
          elements.set(elementName(element), element);
          if (set === sets.byAddress.endpoints || set === sets.byNodePort.endpoints) noteSlot(slots, element);
        });
    const chains = [...this.#ruleCounts().keys()].filter((name) => !frame.has(name));
    return { elements, slots, chains };
  }

  async #elementsIn(set: PacketSet, take: (element: Element) => void): Promise<void> {
    const takeAll = (found: readonly (readonly Omit<Element, "set">[])[]): void => {
      for (const elements of found) for (const element of elements) take({ ...element, set });
    };
    try {
      await this.#socket.dumpInTurns(listElements(set), readElements, takeAll);
    } catch (caught) {
      if (!isErrno(caught, Errno.ENOENT)) throw caught;
    }
  }

  #ruleCounts(): ReadonlyMap<string, number> {
    const counts = new Map<string, number>();
    for (const name of unlessMissing([], () => this.#socket.dump(listRules(this.#table), readChainOfRule)))
      counts.set(name, (counts.get(name) ?? 0) + 1);
    return counts;
  }
}

/** Collects the messages of a transaction. */
class StepDraft {
  readonly first: Message[] = [];
  readonly gone: Element[] = [];
  readonly come: Element[] = [];
  readonly last: Message[] = [];
  readonly changes: ServiceChange[] = [];

  get size(): number {
    return this.first.length + this.gone.length + this.come.length + this.last.length;
  }

  /**
   * New chains first: a packet that is looking up while the kernel changes over could be led to one that has no rules
   * for it yet, and would pass untranslated.
   */
  done(): Step {
    const elements = [
      ...elementMessages(this.gone, deleteElements),
      ...elementMessages(this.come, addElements),
      ...this.last,
    ];
    return { transactions: this.first.length === 0 ? [elements] : [this.first, elements], changes: this.changes };
  }
}

const claimOf = ({ protocol, clusterIp }: ServicePort, { ip, port }: ReturnType<typeof entrancesOf>[number]): string =>
  `${protocol} ${ip === undefined ? clusterIp.family : formatIp(ip)} ${port}`;

const isSame = (one: Element, other: Element): boolean =>
  one.chain === other.chain && one.value?.toHex() === other.value?.toHex() && one.last?.toHex() === other.last?.toHex();

/** The slot's number is the key's last part. */
function noteSlot(slots: Map<string, string[]>, { set, key, value }: Element): void {
  const at = key.length - 4;
  const slot = new DataView(key.buffer, key.byteOffset).getUint32(at, true);
  const from = slot < ownListFrom ? 0 : ownListFrom;
  const name = slotsName(set.name, key.subarray(0, at), from);
  const own = slots.get(name) ?? [];
  own[slot - from] = value?.toHex() ?? "";
  slots.set(name, own);
}
