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
import { newConnectionMeter } from "../pipeline/mod.ts";

/**
 * The meters that flows name. A bundle takes none, so they are there before the flows, each by itself. One that no flow
 * names any more counts nothing and is left for the next pod of that number: there are no more than ports.
 */
export class Meters {
  #standing = new Set<number>();

  /** What the switch has now; one that is another than ours is set right. @throws {OpenFlowError} where the connection is lost */
  async learn(client: OpenFlowClient): Promise<void> {
    const found = await client.meters();
    await client.run(metersToRepair(found).map(modifyMeter));
    this.#standing = new Set(found.map(({ id }) => id));
  }

  /**
   * Those of these flows. What the switch refuses it says again of the flow, and it does what it is asked for in order: so
   * flows may follow at once. @throws {OpenFlowError} as `learn`
   */
  async ensure(client: OpenFlowClient, flows: Iterable<Flow>): Promise<void> {
    const missing = new Set<number>();
    for (const { actions } of flows)
      for (const action of actions)
        if (action.t === "meter" && !this.#standing.has(action.meter)) missing.add(action.meter);
    if (missing.size === 0) return;
    await client.run([...missing].map((id) => addMeter(newConnectionMeter(id))));
    for (const id of missing) this.#standing.add(id);
  }
}

/** As ours are, those that are others. */
export const metersToRepair = (standing: readonly OpenFlowMeter[]): readonly OpenFlowMeter[] =>
  standing.map(({ id }) => newConnectionMeter(id)).filter((own, i) => !Bun.deepEquals(own, standing[i]));

/** Whether a switch can have a meter for each pod's port, of its number: that on Windows has none, nor have kernels before 4.18. */
export class MeterSupport {
  readonly #management: string;
  /** Of a switch that has answered. */
  #known: boolean | undefined;

  constructor(management: string) {
    this.#management = management;
  }

  /** Asks until there was an answer; before that, it has none. */
  async isThere(): Promise<boolean> {
    this.#known ??= await ask(this.#management).catch(() => undefined);
    return this.#known ?? false;
  }
}

/** @throws {OpenFlowError} */
async function ask(management: string): Promise<boolean> {
  using client = await OpenFlowClient.connect(parseAddress(management, isWindows));
  return (await client.maxMeters()) >= lastPodNumber;
}
