import { type Allocator, type Lease, loadHistory } from "../ipam/mod.ts";
import { LogOnChange } from "../shared/async/log-on-change.ts";
import type { Logger } from "../shared/log.ts";
import type { AgentConfig } from "./config/agent-config.ts";

type Ended = (lease: Lease, wasHeld: boolean) => void;

/** Who had the addresses of this agent's networks: told by the allocator, which is opened before anything is kept. */
export class HistoryOfAgent {
  readonly #config: AgentConfig;
  readonly #problem: LogOnChange;
  #note: Ended | undefined;

  constructor(config: AgentConfig, logger: Logger) {
    this.#config = config;
    this.#problem = new LogOnChange(logger);
  }

  /** For the allocator. */
  readonly ended: Ended = (lease, wasHeld) => this.#note?.(lease, wasHeld);

  /** From here on. The store has to stay open as long as what it answers. */
  async begin(allocator: Allocator): Promise<Disposable> {
    const { AddressHistory } = await loadHistory();
    const { dataDir, networks } = this.#config;
    const history = new AddressHistory(allocator, dataDir, {
      networks: networks.map(({ name }) => name),
      report: (problem) => {
        if (problem === undefined) this.#problem.clear();
        else this.#problem.log("who had which address is not written down", problem);
      },
    });
    this.#note = (lease, wasHeld) => history.note(lease, wasHeld);
    return history;
  }
}
