import type { NetworkSandbox } from "../../support/network-sandbox.ts";
import { type PolicedNode, type Probe, ProbedPods } from "../probed-pods.ts";
import { isReached, type NetpolCase, nine, type Places, type Step, worldOf } from "./netpol-case.ts";

const services = nine.map((_, i) => [`10.96.0.${i + 1}`, `fd96::${i + 1}`] as const);

/** The nine pods on nodes of any data path, each with a service that the nodes translate, as kube-proxy does. */
export class NetpolPods implements Disposable {
  readonly #pods: ProbedPods;
  readonly #places: Places;

  private constructor(pods: ProbedPods, places: Places) {
    this.#pods = pods;
    this.#places = places;
  }

  static async attach(sandbox: NetworkSandbox, nodes: readonly PolicedNode[], places: Places): Promise<NetpolPods> {
    const pods = new ProbedPods(nodes);
    const { pods: all } = worldOf({ policies: [], looks: [] }, places);
    for (const pod of all) await pods.attach(sandbox, pod);
    const to = ([4, 6] as const).flatMap((family) =>
      services.map(([ip4, ip6], i) => {
        const target = places.ipsOf(nine[i] ?? "").find((ip) => ip.includes(":") === (family === 6));
        return `${family === 4 ? `ip daddr ${ip4} dnat ip` : `ip6 daddr ${ip6} dnat ip6`} to ${target}`;
      }),
    );
    const file = `table inet services { chain pre { type nat hook prerouting priority dstnat;\n${to.join("\n")}\n}\n}\n`;
    for (const node of nodes) await node.within(() => sandbox.nodeWith("nft -f -", file));
    return new NetpolPods(pods, places);
  }

  /** Runs a case. @returns what was otherwise than its table says */
  async run({ steps }: NetpolCase, family: 4 | 6, by: "pod" | "service"): Promise<readonly string[]> {
    const wrong: string[] = [];
    for (const [i, step] of steps.entries()) {
      await this.#pods.enforce(worldOf(step, this.#places, family));
      wrong.push(...(await this.#look(step, family, by)).map((text) => `step ${i}: ${text}`));
    }
    return wrong;
  }

  async #look({ looks }: Step, family: 4 | 6, by: "pod" | "service"): Promise<readonly string[]> {
    const expected = new Map<Probe, boolean>();
    for (const { port, protocol = "TCP", reached } of looks)
      for (const from of nine)
        for (const to of nine) {
          const is = isReached(reached, from, to);
          const service = services[nine.indexOf(to)]?.[family === 4 ? 0 : 1];
          if (is === undefined || service === undefined) continue;
          expected.set({ from, to, protocol, port, family, ...(by === "pod" ? {} : { service }) }, is);
        }
    const arrived = await this.#pods.send([...expected.keys()], (probe) => expected.get(probe) === true);
    return [...expected]
      .filter(([probe, is]) => arrived.has(probe) !== is)
      .map(
        ([{ from, to, protocol, port }, is]) => `${from} to ${to} by ${protocol} ${port} ${is ? "is lost" : "arrives"}`,
      );
  }

  [Symbol.dispose](): void {
    this.#pods[Symbol.dispose]();
  }
}
