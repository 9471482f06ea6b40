import { encodeError, type PluginIo } from "../../cni/dispatch.ts";
import { latestVersion } from "../../cni/versions.ts";
import { CniCode, CniError } from "../../errors.ts";
import { uptimeMs } from "../../os/uptime.ts";
import type { Done, RequestHead } from "./forward-wire.ts";

/** What a call writes to standard error at most; a runtime's log takes no more of a delegated plugin either. */
const maxLogChars = 1024 * 1024;

/** A call as it came, all of it. */
export interface ForwardedCall extends Pick<RequestHead, "face" | "startedUptimeMs" | "untilUptimeMs"> {
  /** The caller's, as far as they are a plugin's business. */
  readonly env: Readonly<Record<string, string>>;
  readonly stdin: Uint8Array;
}

/** What whoever runs a call has of the caller. */
export interface Caller {
  /** Aborted when it has gone. */
  readonly signal: AbortSignal;
  /** Has it wait so long from now on; said before anything is changed, so that it stays with this call. */
  taken(moreMs: number): void;
}

export type Outcome =
  | ({ readonly t: "done" } & Done)
  /** Nothing has been done: the caller is to run the call itself. */
  | { readonly t: "pass" }
  /** The caller is to look itself what has become of it. */
  | { readonly t: "lost" };

/** Where a call runs: in a daemon, in place of a process of its own. */
export interface HostedCall {
  readonly call: ForwardedCall;
  /** Aborted when the caller has gone. */
  readonly signal: AbortSignal;
  /**
   * Leaves the call to the caller, as what only its process can do: before anything has been changed.
   * @throws always
   */
  pass(): never;
  /** Lets the caller find out what has become of the call, which has failed here in a way in which it would not have there. @throws always */
  lose(cause: unknown): never;
  /**
   * From here on the call is ours. To be called before anything is changed.
   * @param timeoutMs what the configuration allows, since the call began
   * @throws as `pass` where that is over
   */
  take(timeoutMs: number): void;
}

/** One plugin, by its environment and streams. @returns the exit status */
export type CniRunner = (io: PluginIo, hosted: HostedCall) => Promise<number>;

/** As `runPluginProcess`, with the texts of a caller elsewhere in place of this process's own. */
export async function runForwarded(call: ForwardedCall, caller: Caller, runner: CniRunner): Promise<Outcome> {
  let instead: Outcome | undefined;
  let stdout: string | undefined;
  let stderr = "";
  const io: PluginIo = {
    env: call.env,
    readStdin: async () => call.stdin,
    writeResult: async (text) => {
      if (stdout !== undefined)
        throw new CniError(CniCode.io, "Cannot write a second result to standard output: it takes one object");
      stdout = `${text}\n`;
    },
    log: (line) => {
      if (stderr.length < maxLogChars) stderr += `${line}\n`.slice(0, maxLogChars);
    },
  };
  const end = (outcome: Outcome, cause?: unknown): never => {
    instead ??= outcome;
    // The code on the way up may make of it what it likes.
    throw new CniError(CniCode.tryAgainLater, "Cannot run the call here: it is its caller's", { cause });
  };
  const hosted: HostedCall = {
    call,
    signal: caller.signal,
    pass: () => end({ t: "pass" }),
    lose: (cause) => end({ t: "lost" }, cause),
    take(timeoutMs) {
      const moreMs = Math.floor(timeoutMs - ((uptimeMs() ?? 0) - call.startedUptimeMs));
      if (caller.signal.aborted || moreMs < 1) end({ t: "pass" });
      caller.taken(moreMs);
    },
  };
  let status = 1;
  try {
    status = await runner(io, hosted);
  } catch (caught) {
    await io.writeResult(encodeError(CniError.from(caught), latestVersion)).catch(() => undefined);
  }
  return instead ?? { t: "done", status, stdout: stdout ?? "", stderr };
}
