import { CniCode, CniError } from "../../../shared/errors.ts";
import {
  absent,
  type Compare,
  type EtcdClient,
  etcdLimits,
  get,
  getAll,
  type KeyValue,
  keyOf,
  put,
  type RequestOp,
  remove,
  retried,
  textOf,
  unchanged,
} from "../../protocols/etcd/mod.ts";
import {
  type Followed,
  isProjectName,
  privilegedProject,
  projectNameRule,
  type TenantRegistry,
} from "../node-registry.ts";
import { freeNumber } from "./cluster-networks.ts";
import { type Keys, takeTicket } from "./keys.ts";

/** OpenShift SDN: 0 is for everybody, 1 to 9 are kept back, and the tunnel's key has 24 bits. */
const firstVnid = 10;
const vnids = 2 ** 24 - firstVnid;

type Target = { readonly join: string } | "global" | "own";
type Follow = <T>(
  prefix: string,
  read: (name: string, value: string) => T | undefined,
) => Followed<ReadonlyMap<string, T>>;

/** The state of a project that one transaction reads, and that the next requires to be unchanged. */
interface Project {
  readonly key: string;
  readonly modRevision: number;
  readonly vnid: number | undefined;
}

/**
 * VNIDs of projects. There is a key per project with its VNID, and a key per VNID in use. Every project that begins or
 * ceases to use a VNID changes the latter's revision, so that none is freed while another project joins it.
 */
export class EtcdTenants implements TenantRegistry {
  readonly #client: EtcdClient;
  readonly #keys: Keys;
  readonly #follow: Follow;

  constructor(client: EtcdClient, keys: Keys, follow: Follow) {
    this.#client = client;
    this.#keys = keys;
    this.#follow = follow;
  }

  async vnidOf(project: string): Promise<number> {
    const action = `find the VNID of project "${project}"`;
    this.#requireName(project, action);
    return await retried(this.#client, action, async () => {
      const [known] = await this.#projects(project);
      return known?.vnid ?? (await this.#assign(project, project === privilegedProject ? "global" : "own", true));
    });
  }

  async assign(project: string, to: Target): Promise<number> {
    const action = `assign a VNID to project "${project}"`;
    this.#requireName(project, action);
    if (typeof to === "object") this.#requireName(to.join, action);
    // A project's own VNID is always a new one, so an attempt whose answer was lost must not be repeated if it
    // succeeded.
    const before = await retried(this.#client, action, () => this.#projects(project));
    return await retried(this.#client, action, async () => {
      const [now] = await this.#projects(project);
      const done = to === "own" && now?.modRevision !== before[0]?.modRevision;
      return done && now?.vnid !== undefined ? now.vnid : await this.#assign(project, to, false);
    });
  }

  async confirm(project: string, vnid: number): Promise<void> {
    const action = `confirm VNID ${vnid} of project "${project}"`;
    this.#requireName(project, action);
    await retried(this.#client, action, async () => {
      const { found } = await this.#client.txn({ run: [getAll(this.#keys.vnids)] });
      const all = (found[0] ?? []).map((kv) => ({ project: keyOf(kv).slice(this.#keys.vnids.length), kv }));
      const own = all.find((each) => each.project === project);
      const is = (has: string): CniError =>
        new CniError(CniCode.invalidConfig, `Cannot ${action} in ${this.#client.name}: it has ${has}`);
      if (own === undefined || this.#vnidIn(own.kv) !== vnid) throw is(own === undefined ? "none" : textOf(own.kv));
      // All projects that share the VNID are confirmed together.
      const others = all.filter((each) => vnid >= firstVnid && each !== own && vnidOfText(textOf(each.kv)) === vnid);
      for (const each of [...others, own]) {
        const { succeeded } = await this.#client.txn({
          when: [unchanged(keyOf(each.kv), each.kv.modRevision)],
          run: [this.#confirmation(each.project, vnid)],
        });
        if (!succeeded) throw is("another by now, or one that shares it has");
      }
    });
  }

  follow(): Followed<ReadonlyMap<string, number>> {
    return this.#follow(this.#keys.vnids, (_, value) => vnidOfText(value));
  }

  followConfirmed(): Followed<ReadonlyMap<string, number>> {
    return this.#follow(this.#keys.confirmedVnids, (_, value) => vnidOfText(value));
  }

  #confirmation(project: string, vnid: number): RequestOp {
    return put(this.#keys.confirmedVnid(project), String(vnid));
  }

  /** @param first only if the project has none yet; for nodes, which confirm nothing */
  async #assign(project: string, to: Target, first: boolean): Promise<number> {
    let taken: ReadonlySet<string> | undefined;
    const ticket = to === "own" ? await takeTicket(this.#client, this.#keys.ticket("vnids")) : 0;
    for (let i = 0; i < etcdLimits.claims; i++) {
      const [self, other] = await this.#projects(project, ...(typeof to === "object" ? [to.join] : []));
      if (self === undefined) break;
      if (first && self.vnid !== undefined) return self.vnid;
      const vnid = to === "own" ? this.#free(ticket, taken) : to === "global" ? 0 : other?.vnid;
      if (vnid === undefined) throw this.#none(project, to);
      const joined = other === undefined ? [] : [unchanged(other.key, other.modRevision)];
      // Joining confirms the number for both projects, since sharing is intended.
      const confirmed = [project, ...(typeof to === "object" ? [to.join] : [])];
      const confirming = first ? [] : [...new Set(confirmed)].map((each) => this.#confirmation(each, vnid));
      const moving = vnid === self.vnid ? noPart : await this.#move(self, vnid, to === "own");
      const { succeeded } = await this.#client.txn({
        when: [unchanged(self.key, self.modRevision), ...joined, ...moving.when],
        run: [...moving.run, ...confirming],
      });
      if (succeeded) return vnid;
      if (to === "own") taken = await this.#taken();
    }
    throw this.#restless(project);
  }

  #restless(project: string): CniError {
    const is = `others have changed the VNIDs ${etcdLimits.claims} times meanwhile`;
    const message = `Cannot assign a VNID to project "${project}" in ${this.#client.name}: ${is}`;
    return new CniError(CniCode.tryAgainLater, message);
  }

  async #move(self: Project, vnid: number, fresh: boolean): Promise<Part> {
    const using = await this.#use(vnid, fresh);
    const ceasing = await this.#cease(self);
    return {
      when: [...using.when, ...ceasing.when],
      run: [put(self.key, String(vnid)), ...using.run, ...ceasing.run],
    };
  }

  /** The VNID of the ticket if the taken ones are not known yet; else any free one. */
  #free(ticket: number, taken: ReadonlySet<string> | undefined): number | undefined {
    if (taken === undefined) return firstVnid + (ticket % vnids);
    const order = freeNumber(vnids, (each) => !taken.has(this.#keys.vnidId(firstVnid + each)));
    return order === undefined ? undefined : firstVnid + order;
  }

  async #taken(): Promise<ReadonlySet<string>> {
    const { found } = await this.#client.txn({ run: [getAll(this.#keys.vnidIds, { keysOnly: true })] });
    return new Set((found[0] ?? []).map(keyOf));
  }

  async #projects(...names: readonly string[]): Promise<readonly Project[]> {
    const keys = names.map((name) => this.#keys.vnid(name));
    const { found } = await this.#client.txn({ run: keys.map(get) });
    return keys.map((key, i) => {
      const kv = found[i]?.[0];
      return { key, modRevision: kv?.modRevision ?? 0, vnid: kv === undefined ? undefined : this.#vnidIn(kv) };
    });
  }

  #vnidIn(kv: KeyValue): number {
    const vnid = vnidOfText(textOf(kv));
    if (vnid !== undefined) return vnid;
    const is = `"${keyOf(kv)}" is "${textOf(kv).slice(0, 40)}", wanted a number from 0 to ${firstVnid + vnids - 1}`;
    throw new CniError(CniCode.ipamFailure, `Cannot read a VNID in ${this.#client.name}: ${is}`);
  }

  async #use(vnid: number, fresh: boolean): Promise<Part> {
    if (vnid < firstVnid) return noPart;
    const key = this.#keys.vnidId(vnid);
    if (fresh) return { when: [absent(key)], run: [put(key, "")] };
    const { found } = await this.#client.txn({ run: [get(key)] });
    return { when: [unchanged(key, found[0]?.[0]?.modRevision ?? 0)], run: [put(key, "")] };
  }

  /** Frees the project's VNID if no other project uses it. */
  async #cease({ key: own, vnid }: Project): Promise<Part> {
    if (vnid === undefined || vnid < firstVnid) return noPart;
    const key = this.#keys.vnidId(vnid);
    const { found } = await this.#client.txn({ run: [get(key), getAll(this.#keys.vnids)] });
    const shared = (found[1] ?? []).some((kv) => keyOf(kv) !== own && vnidOfText(textOf(kv)) === vnid);
    return { when: [unchanged(key, found[0]?.[0]?.modRevision ?? 0)], run: [shared ? put(key, "") : remove(key)] };
  }

  #requireName(project: string, action: string): void {
    if (isProjectName(project)) return;
    const is = `${JSON.stringify(project.slice(0, 70))} is no name of a project`;
    throw new CniError(CniCode.invalidConfig, `Cannot ${action.slice(0, 120)}: ${is}, wanted ${projectNameRule}`);
  }

  #none(project: string, to: Target): CniError {
    const cannot = `Cannot assign a VNID to project "${project}" in ${this.#client.name}`;
    if (typeof to === "object") return new CniError(CniCode.invalidConfig, `${cannot}: project "${to.join}" has none`);
    return new CniError(CniCode.ipamFailure, `${cannot}: all ${vnids} are taken`);
  }
}

/** A part of a transaction. */
interface Part {
  readonly when: readonly Compare[];
  readonly run: readonly RequestOp[];
}

const noPart: Part = { when: [], run: [] };

/** `undefined` for an invalid VNID. */
function vnidOfText(text: string): number | undefined {
  if (!/^\d{1,8}$/.test(text)) return undefined;
  const vnid = Number(text);
  return vnid < firstVnid + vnids ? vnid : undefined;
}
