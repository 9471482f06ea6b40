import { reasonOf } from "../../shared/reason.ts";

/** The outcome for one object on the node. */
export interface HostChange {
  readonly step: string;
  readonly what: string;
  readonly did: "was there" | "made" | "undone" | "was gone" | "failed";
  /** Where it failed: why. */
  readonly problem?: string;
}

/**
 * One step of a clean-up, whose failure does not stop the others.
 * @param work answers whether there was anything to undo
 */
export async function attempt(step: string, what: string, work: () => boolean | Promise<boolean>): Promise<HostChange> {
  try {
    return { step, what, did: (await work()) ? "undone" : "was gone" };
  } catch (caught) {
    return { step, what, did: "failed", problem: reasonOf(caught) };
  }
}
