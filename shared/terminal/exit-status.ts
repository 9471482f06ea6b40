/** What a command's end tells a script. */
export const exitStatus = {
  done: 0,
  /** Also: `check` has found something. */
  failed: 1,
  wrongArguments: 2,
  /** Something could not be looked at, so that "nothing found" would be no answer. */
  cannotTell: 2,
  /** What was asked for does not exist. */
  notThere: 3,
  /** The name fits more than one thing, and one was wanted. */
  several: 4,
} as const;
