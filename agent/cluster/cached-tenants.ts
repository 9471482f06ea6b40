import { LiveValue } from "../../shared/async/live-value.ts";
import { CniCode, CniError } from "../../shared/errors.ts";
import type { Logger } from "../../shared/log.ts";
import type { Followed, TenantRegistry } from "./node-registry.ts";
import { RefusalLog } from "./peers.ts";
import type { RegistryCache } from "./registry-cache.ts";
import { trustedVnids } from "./trusted-vnids.ts";

type Vnids = ReadonlyMap<string, number>;

/** A number and its confirmation are written together but arrive by two watches, so changes are gathered. */
const gatherMs = 50;

/**
 * The registry's tenants that this node trusts, with a cache for when the registry cannot be reached. Only people
 * change a project's VNID, so the cached one is valid, and is preferred to one that nobody has confirmed.
 */
export class CachedTenants implements TenantRegistry, AsyncDisposable {
  readonly #registry: TenantRegistry;
  readonly #known: RegistryCache;
  readonly #log: RefusalLog;
  readonly #followed: Followed<Vnids>;
  /** Absent if only people can write the registry's VNIDs. */
  readonly #confirmed: Followed<Vnids> | undefined;
  readonly #value: LiveValue<Vnids>;
  readonly #subscriptions = new DisposableStack();
  #gathering: ReturnType<typeof setTimeout> | undefined;
  #refused: readonly string[] = [];

  constructor(registry: TenantRegistry, known: RegistryCache, logger: Logger) {
    this.#registry = registry;
    this.#known = known;
    this.#log = new RefusalLog(logger);
    this.#value = new LiveValue(known.state.tenants.size === 0 ? undefined : known.state.tenants);
    this.#followed = registry.follow();
    this.#confirmed = registry.followConfirmed?.();
    this.#subscriptions.use(this.#followed.subscribe(() => this.#gather()));
    if (this.#confirmed !== undefined) this.#subscriptions.use(this.#confirmed.subscribe(() => this.#gather()));
  }

  /** Records that are not accepted here, a sentence for each. */
  get refusals(): readonly string[] {
    return this.#refused;
  }

  async vnidOf(project: string): Promise<number> {
    try {
      const vnid = await this.#registry.vnidOf(project);
      this.#judge(new Map(this.#followed.current ?? this.#known.state.tenants).set(project, vnid));
    } catch (caught) {
      if (!(caught instanceof CniError) || caught.code !== CniCode.tryAgainLater) throw caught;
      if (!this.#known.state.tenants.has(project)) throw caught;
    }
    const taken = this.#known.state.tenants.get(project);
    if (taken !== undefined) return taken;
    const is = this.#refused.find((sentence) => sentence.startsWith(`project "${project}" `)) ?? "it is refused";
    throw new CniError(CniCode.tryAgainLater, `Cannot find the VNID of project "${project}": ${is}`);
  }

  assign(project: string, to: Parameters<TenantRegistry["assign"]>[1]): Promise<number> {
    return this.#registry.assign(project, to);
  }

  /** The source ends with this object, so disposing of the result does nothing. */
  follow(): Followed<Vnids> {
    const value = this.#value;
    return {
      get current() {
        return value.current;
      },
      subscribe: (listener) => value.subscribe(listener),
      [Symbol.asyncDispose]: () => Promise.resolve(),
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearTimeout(this.#gathering);
    this.#subscriptions[Symbol.dispose]();
    await this.#followed[Symbol.asyncDispose]();
    await this.#confirmed?.[Symbol.asyncDispose]();
  }

  #gather(): void {
    this.#gathering ??= setTimeout(() => {
      this.#gathering = undefined;
      if (this.#followed.current !== undefined) this.#judge(this.#followed.current);
    }, gatherMs);
  }

  #judge(told: Vnids): void {
    const { tenants } = this.#known.state;
    const { taken, refused } =
      this.#confirmed === undefined
        ? { taken: told, refused: [] }
        : trustedVnids(told, this.#confirmed.current ?? new Map(), tenants);
    this.#refused = refused;
    // A confirmation may still be under way, so this is logged only after the first list of them.
    if (this.#confirmed?.current !== undefined) this.#log.tell(refused);
    if (isSame(taken, tenants)) return;
    this.#known.update({ tenants: taken });
    this.#value.set(taken);
  }
}

const isSame = (a: Vnids, b: Vnids): boolean =>
  a.size === b.size && [...a].every(([project, vnid]) => b.get(project) === vnid);
