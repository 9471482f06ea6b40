import { CniCode, CniError } from "../../../shared/errors.ts";
import type { Flow, OpenFlowGroup } from "../../protocols/openflow/mod.ts";
import type { Category } from "./pipeline/cookie.ts";

/** What belongs together on the switch: flows of one pod, one peer, one service; comes, changes and goes as a whole. */
export interface Part {
  readonly category: Category;
  /** Their cookies are set when they are put in. */
  readonly flows: readonly Flow[];
  readonly groups?: readonly OpenFlowGroup[];
  /** In the cookie; also of what its flows learn. */
  readonly object?: number;
}

/**
 * What the switch is to have, whole. It is put in by bundles, again after the switch has restarted, and flows of
 * earlier rounds go once all is there.
 */
export interface SwitchProgram {
  /** Number of this start of the agent, in the cookies of its flows; what flows learn has 0. */
  readonly round: number;
  /**
   * Sets parts by their keys, `undefined` takes one away: all of it in one bundle, so that no packet sees half.
   * While the switch cannot be reached the parts are kept and the call fails; they go in with the next connection.
   * @throws {CniError} 11 where the switch cannot be reached, 102 where it refuses
   */
  set(parts: ReadonlyMap<string, Part | undefined>): Promise<void>;
}

/** Whether the switch will have none of it, rather than not now. */
export const isRefusal = (caught: unknown): caught is CniError =>
  caught instanceof CniError && caught.code !== CniCode.tryAgainLater;
