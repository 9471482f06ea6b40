import { CniCode, CniError } from "../../shared/errors.ts";
import { LiveValue } from "../live-value.ts";
import type { KnownStateFile } from "./known-state.ts";
import type { Followed, TenantRegistry } from "./node-registry.ts";

/**
 * The registry's tenants, with what was last heard of them for the time when it cannot be reached. A project's VNID
 * changes by a person's word only, so what is known is as good as new.
 */
export class RememberedTenants implements TenantRegistry, AsyncDisposable {
  readonly #registry: TenantRegistry;
  readonly #known: KnownStateFile;
  readonly #followed: Followed<ReadonlyMap<string, number>>;
  readonly #value: LiveValue<ReadonlyMap<string, number>>;
  readonly #subscription: Disposable;

  constructor(registry: TenantRegistry, known: KnownStateFile) {
    this.#registry = registry;
    this.#known = known;
    this.#value = new LiveValue(known.state.tenants.size === 0 ? undefined : known.state.tenants);
    this.#followed = registry.follow();
    this.#subscription = this.#followed.subscribe((tenants) => {
      known.update({ tenants });
      this.#value.set(tenants);
    });
  }

  async vnidOf(project: string): Promise<number> {
    try {
      const vnid = await this.#registry.vnidOf(project);
      this.#remember(project, vnid);
      return vnid;
    } catch (caught) {
      const known = this.#known.state.tenants.get(project);
      if (known === undefined || !(caught instanceof CniError) || caught.code !== CniCode.tryAgainLater) throw caught;
      return known;
    }
  }

  async assign(project: string, to: Parameters<TenantRegistry["assign"]>[1]): Promise<number> {
    const vnid = await this.#registry.assign(project, to);
    this.#remember(project, vnid);
    return vnid;
  }

  /** Ends with this object; what is handed out has nothing of its own to end. */
  follow(): Followed<ReadonlyMap<string, number>> {
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
    this.#subscription[Symbol.dispose]();
    await this.#followed[Symbol.asyncDispose]();
  }

  #remember(project: string, vnid: number): void {
    const { tenants } = this.#known.state;
    if (tenants.get(project) !== vnid) this.#known.update({ tenants: new Map(tenants).set(project, vnid) });
  }
}
