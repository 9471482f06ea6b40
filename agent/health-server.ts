import { CniCode, CniError } from "../shared/errors.ts";
import { reasonOf } from "../shared/reason.ts";

/** The part of the agent that the probes ask. */
export interface Answerable {
  /** Why the node as a whole has no network for pods now. */
  outages(): Promise<readonly unknown[]>;
}

/** A kubelet's connection lasts for one probe. */
const idleSeconds = 5;
/** Answers are cached this long, because anybody on the node may ask and each answer checks the data path. */
const freshMs = 1000;

/**
 * The probes of a kubelet, on the node's loopback, which pods with a network of their own cannot reach. Exec probes ask
 * the same by `pipette status`, and start a process each time.
 *
 * `/livez`: this process answers. `/startupz`: the agent serves, or only waits for others. `/readyz`: as `pipette
 * status --readiness`. The answer has the number of problems and not their text, because everybody on the node may read
 * it.
 */
export class HealthServer implements AsyncDisposable {
  #server: Bun.Server<undefined> | undefined;
  #agent: Answerable | undefined;
  #asked: { readonly sinceMs: number; readonly outages: Promise<number> } | undefined;

  /** @throws {CniError} code 5 where the port is taken, since another program would answer the probes */
  listen(port: number): void {
    try {
      this.#server = Bun.serve({
        hostname: "127.0.0.1",
        port,
        idleTimeout: idleSeconds,
        maxRequestBodySize: 1024,
        development: false,
        fetch: (request) => this.#answer(new URL(request.url).pathname),
      });
    } catch (caught) {
      const is = caught instanceof Error && "code" in caught ? String(caught.code) : reasonOf(caught);
      throw new CniError(
        CniCode.io,
        `Cannot answer probes: port ${port} of 127.0.0.1 cannot be had (${is}), wanted it free, or another with --health-port`,
      );
    }
  }

  /** The agent has been started. */
  started(agent: Answerable): void {
    this.#agent = agent;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server?.stop(true);
  }

  async #answer(path: string): Promise<Response> {
    if (path === "/livez") return ok();
    if (path !== "/startupz" && path !== "/readyz") return new Response("no such page\n", { status: 404 });
    const agent = this.#agent;
    if (agent === undefined) return not("the agent is still starting");
    if (path === "/startupz") return ok();
    const problems = await this.#outages(agent);
    return problems === 0 ? ok() : not(`${problems} problems, which "pipette status" tells`);
  }

  #outages(agent: Answerable): Promise<number> {
    const nowMs = performance.now();
    if (this.#asked === undefined || nowMs - this.#asked.sinceMs > freshMs)
      // A failed check counts as one problem, since nobody knows whether pods would get a network.
      this.#asked = {
        sinceMs: nowMs,
        outages: agent.outages().then(
          ({ length }) => length,
          () => 1,
        ),
      };
    return this.#asked.outages;
  }
}

const ok = (): Response => new Response("ok\n");
const not = (is: string): Response => new Response(`${is}\n`, { status: 503 });
