import { CniCode, CniError } from "../../../shared/errors.ts";
import { reasonOf } from "../../../shared/reason.ts";
import { Connection, type OvsdbAddress, openStream } from "../ovsdb/mod.ts";
import type { ControlledDaemon } from "./control-places.ts";

/** A local daemon answers within milliseconds; one that is stopped never does. */
const timeoutMs = 5_000;

/** Where a daemon of Open vSwitch takes commands, as ovs-appctl(8) gives them. */
export interface Control extends Disposable {
  /**
   * @param action continues "Cannot …"
   * @returns what ovs-appctl would print
   * @throws {CniError} 7 where the daemon refuses the command, 11 where no answer comes
   */
  ask(command: string, args: readonly string[], action: string): Promise<string>;
}

/**
 * Connects to the first of these that takes a connection. A daemon that was killed leaves its socket behind.
 * @throws {CniError} 11 where none does
 */
export async function openControl(
  places: readonly OvsdbAddress[],
  action: string,
  daemon: ControlledDaemon = "ovs-vswitchd",
): Promise<Control> {
  const refusals: string[] = [];
  for (const address of places) {
    try {
      return controlOn(await open(address), daemon);
    } catch (caught) {
      refusals.push(`"${placeText(address)}": ${reasonOf(caught)}`);
    }
  }
  const isForbidden = refusals.some((refusal) => refusal.includes("EACCES"));
  const wanted = isForbidden
    ? "the rights of root"
    : daemon === "ovs-vswitchd"
      ? "a running ovs-vswitchd, or its socket by --control"
      : `a running ${daemon}`;
  const is = refusals.length === 0 ? `there is no socket of ${daemon}` : `nobody answers at ${refusals.join(", ")}`;
  throw new CniError(CniCode.tryAgainLater, `Cannot ${action}: ${is}, wanted ${wanted}`);
}

const open = (address: OvsdbAddress): Promise<Connection> =>
  Connection.open({
    address,
    open: openStream,
    notify: () => undefined,
    connectMs: timeoutMs,
    // Every question has its own bound, and the connection does not outlive the last.
    probeMs: 2 * timeoutMs,
    ended: () => undefined,
  });

/** The protocol is the database's: JSON-RPC without delimiters, whose results and errors are texts here. */
function controlOn(connection: Connection, daemon: ControlledDaemon): Control {
  return {
    ask: (command, args, action) =>
      new Promise((resolve, reject) => {
        const fail = (code: CniCode, is: string): void =>
          reject(new CniError(code, `Cannot ${action}: ${daemon} ${is}, wanted the answer to "${command}"`));
        connection.request(command, args, timeoutMs, (outcome) => {
          if (outcome.t === "result" && typeof outcome.result === "string") resolve(outcome.result);
          else if (outcome.t === "result") fail(CniCode.decode, "answers something that is no text");
          else if (outcome.t === "error") fail(CniCode.invalidConfig, `refuses: ${refusalText(outcome.error)}`);
          else if (outcome.t === "late") fail(CniCode.tryAgainLater, `says nothing for ${timeoutMs} ms`);
          else fail(CniCode.tryAgainLater, outcome.t === "full" ? "is asked too much" : `is gone (${outcome.reason})`);
        });
      }),
    [Symbol.dispose]: () => connection[Symbol.dispose](),
  };
}

const longestRefusal = 500;
const refusalText = (error: unknown): string =>
  typeof error === "string" ? error.trim().slice(0, longestRefusal) : "it does not say why";

const placeText = (address: OvsdbAddress): string =>
  address.t === "unix" ? address.path : address.t === "pipe" ? address.name : `tcp:${address.host}:${address.port}`;
