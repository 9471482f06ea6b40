/** One call of a sequence, for either allocator. */
export interface Call {
  readonly verb: "ADD" | "DEL" | "CHECK";
  readonly containerId: string;
  readonly ifname: string;
  /** CNI_ARGS. */
  readonly args: string;
  /** Standard input; `@DATA@` stands for the data directory, which each side has its own of. */
  readonly stdin: string;
  /** Something besides the names is wrong with it on purpose: what must work nevertheless is DEL and CHECK. */
  readonly broken: boolean;
  /** Asks for addresses of its choice. */
  readonly asks: boolean;
}

/** How a call ended. */
export interface Ended {
  readonly status: number;
  readonly stdout: string;
}

export const dataDirHere = "@DATA@";

export const describeCall = ({ verb, containerId, ifname, args, stdin }: Call): string =>
  `${verb} ${containerId} ${ifname} ${JSON.stringify(args)} <<< ${stdin}`;
