import type { CniCmdArgs } from "../../shared/proto/cni-messages.ts";
import type { CallOptions } from "../../shared/rpc/call.ts";

/**
 * `callUnary` with a test in the place of the agent. It loads nothing of the product, so that it can stand for a part of it:
 * `vi.mock(import("../shared/rpc/call.ts"), () => import("../test/fakes/agent-calls.ts") as never);`
 */

export interface Asked {
  /** The last part of the method's path. */
  readonly method: string;
  readonly socket: string;
  // biome-ignore lint/suspicious/noExplicitAny: the request of whichever method it is
  readonly request: any;
  readonly timeoutMs: number;
  readonly metadata: Readonly<Record<string, string>>;
}

/** What the agent answers, or throws: an `RpcError` where it gives no answer. */
export type Agent = (asked: Asked) => unknown;

export const present: { agent: Agent; asked: Asked[] } = { agent: () => ({}), asked: [] };

export async function callUnary(
  socket: string,
  { path }: { readonly path: string },
  request: { readonly cniArgs?: CniCmdArgs },
  { timeoutMs, metadata = {} }: CallOptions,
): Promise<unknown> {
  const args = request.cniArgs;
  const text = args === undefined ? undefined : new TextDecoder().decode(args.networkConfiguration);
  const asked: Asked = {
    method: path.slice(path.lastIndexOf("/") + 1),
    socket,
    request: args === undefined ? request : { ...args, networkConfiguration: text },
    timeoutMs,
    metadata,
  };
  present.asked.push(asked);
  return present.agent(asked);
}
