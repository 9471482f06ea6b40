/** What became of one thing on the node. */
export interface HostChange {
  readonly step: string;
  readonly what: string;
  readonly did: "was there" | "made" | "undone" | "was gone" | "failed";
  /** Where it failed: why. */
  readonly problem?: string;
}
