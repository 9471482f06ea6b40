import { isWindows } from "../../../../shared/os/platform.ts";
import {
  addMeter,
  type Flow,
  modifyMeter,
  OpenFlowClient,
  type OpenFlowMeter,
  parseAddress,
} from "../../../protocols/openflow/mod.ts";
import { lastPodNumber } from "../database/pod-rows.ts";
import { newConnectionMeter, verdictMeter } from "../pipeline/mod.ts";

/**
 * The meters that flows refer to. A bundle cannot contain meters, so they are installed separately before the flows.
 * Unused ones stay for the next pod with that number; there are no more than ports.
 */
export class Meters {
  #standing = new Set<number>();

  /** Reads the switch's meters, and corrects different ones. @throws {OpenFlowError} where the connection is lost */
  async sync(client: OpenFlowClient): Promise<void> {
    const found = await client.meters();
    await client.run(metersToRepair(found).map(modifyMeter));
    this.#standing = new Set(found.map(({ id }) => id));
  }

  /**
   * Installs the meters of these flows without waiting: the switch handles requests in order, and a refused meter makes
   * it refuse the flow too.
   * @throws {OpenFlowError} as `learn`
   */
  async ensure(client: OpenFlowClient, flows: Iterable<Flow>): Promise<void> {
    const missing = new Set<number>();
    for (const { actions } of flows) {
      for (const action of actions) {
        const meter = action.t === "meter" || action.t === "controller" ? action.meter : undefined;
        if (meter !== undefined && !this.#standing.has(meter)) missing.add(meter);
      }
    }
    if (missing.size === 0) return;
    await client.run([...missing].map((id) => addMeter(meterOf(id))));
    for (const id of missing) this.#standing.add(id);
  }
}

const meterOf = (id: number): OpenFlowMeter => (id === verdictMeter.id ? verdictMeter : newConnectionMeter(id));

/** The wanted meters in place of those that differ. */
export const metersToRepair = (standing: readonly OpenFlowMeter[]): readonly OpenFlowMeter[] =>
  standing.map(({ id }) => meterOf(id)).filter((own, i) => !Bun.deepEquals(own, standing[i]));

/** Whether a switch supports a meter for each pod's port, and the one of verdicts: not on Windows, and not with kernels before 4.18. */
export class MeterSupport {
  readonly #management: string;
  /** Of a switch that has answered. */
  #known: boolean | undefined;

  constructor(management: string) {
    this.#management = management;
  }

  /** Asks until there was an answer; until then the answer is no. */
  async isThere(): Promise<boolean> {
    this.#known ??= await ask(this.#management).catch(() => undefined);
    return this.#known ?? false;
  }
}

/** @throws {OpenFlowError} */
async function ask(management: string): Promise<boolean> {
  using client = await OpenFlowClient.connect(parseAddress(management, isWindows));
  return (await client.maxMeters()) >= Math.max(lastPodNumber, verdictMeter.id);
}
