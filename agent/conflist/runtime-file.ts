import type { Logger } from "../../shared/log.ts";
import { writeAtomically } from "../../shared/os/atomic-file.ts";
import type { AgentConfig } from "../config/agent-config.ts";
import { chainOf, lackOf } from "./chained-plugins.ts";
import { conflistPath, conflistText, foreignBefore } from "./conflist.ts";
import { readIfThere } from "./listed-plugins.ts";

/** The network configuration file for the runtime: written when the node is ready, checked when a person asks. */
export class RuntimeFile {
  readonly #logger: Logger;
  #written: { readonly config: AgentConfig; readonly path: string; readonly text: string } | undefined;

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  /** @throws {CniError} where it cannot be written */
  async write(config: AgentConfig): Promise<void> {
    const path = conflistPath(config);
    const [network] = config.networks;
    if (path === undefined || network === undefined) return;
    const chain = await chainOf(config);
    const text = conflistText(config, network, chain);
    const isNew = writeAtomically(path, text);
    this.#written = { config, path, text };
    this.#logger.info(isNew ? "wrote the network configuration" : "the network configuration is up to date", { path });
    const lack = lackOf(chain);
    if (lack !== undefined) this.#logger.warn(`the network configuration is without ${lack}`);
  }

  /** Changes that others have made to it since, in sentences that end with what to do. */
  async troubles(): Promise<readonly string[]> {
    if (this.#written === undefined) return [];
    const { config, path, text } = this.#written;
    const todo = '"pipette doctor --repair" has it written again';
    const is = readIfThere(path);
    const own =
      is === undefined
        ? [`"${path}" is missing or cannot be read, so the runtime knows no network of ours: ${todo}`]
        : is === text
          ? []
          : [`"${path}" is not as the agent wrote it: ${todo}`];
    return [...own, ...(await foreignBefore(config))];
  }
}
