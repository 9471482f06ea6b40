import { isWindows } from "../../../shared/os/platform.ts";
import { OpenFlowClient, parseAddress } from "../../protocols/openflow/mod.ts";
import { lastPodNumber } from "./port-numbers.ts";

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
