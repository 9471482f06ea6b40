import type { EndSignal } from "../../async/late-signal.ts";
import { encodeError, type PluginIo } from "../../cni/dispatch.ts";
import { latestVersion } from "../../cni/versions.ts";
import { CniCode, CniError } from "../../errors.ts";
import { uptimeMs } from "../../os/uptime.ts";
import type { KnownConfs } from "../known-confs.ts";
import type { Done, RequestHead } from "./forward-wire.ts";

/** How much a call may write to standard error. */
const maxLogChars = 1024 * 1024;

/** A complete call. */
export interface ForwardedCall extends Pick<RequestHead, "face" | "startedUptimeMs" | "untilUptimeMs"> {
  /** The caller's environment variables that concern a plugin. */
  readonly env: Readonly<Record<string, string>>;
  readonly stdin: Uint8Array;
}

/** The caller, as the code that runs its call sees it. */
export interface Caller {
  /** Aborted when it has gone. */
  readonly signal: EndSignal;
  /** Makes it wait so long from now on; called before anything is changed, so that it stays with this call. */
  taken(moreMs: number): void;
}

export type Outcome =
  | ({ readonly t: "done" } & Done)
  /** Nothing has been done: the caller runs the call itself. */
  | { readonly t: "pass" }
  /** The caller has to find out the outcome itself. */
  | { readonly t: "lost" };

/** A call that runs in a daemon instead of a process of its own. */
export interface HostedCall {
  readonly call: ForwardedCall;
  /** Aborted when the caller has gone. */
  readonly signal: EndSignal;
  /** Milliseconds since the call began, in its caller's process. */
  agedMs(): number;
  /**
   * Has the caller run the call itself, because only its process can; before anything has been changed.
   * @throws always
   */
  pass(): never;
  /**
   * Has the caller find out the outcome itself, after a failure here that its own process would not have had.
   * @throws always
   */
  lose(cause: unknown): never;
  /**
   * From here on this process runs the call. To be called before anything is changed.
   * @param timeoutMs what the configuration allows, since the call began
   * @throws as `pass` where that is over
   */
  take(timeoutMs: number): void;
}

/** One plugin, by its environment and streams. @returns the exit status */
export type CniRunner = (io: PluginIo, hosted: HostedCall) => Promise<number>;

/** As `runPluginProcess`, with a caller's texts instead of this process's environment and streams. */
export async function runForwarded(
  call: ForwardedCall,
  caller: Caller,
  runner: CniRunner,
  confs: KnownConfs,
): Promise<Outcome> {
  let instead: Outcome | undefined;
  let stdout: string | undefined;
  let stderr = "";
  const io: PluginIo = {
    env: call.env,
    readStdin: () => call.stdin,
    readConf: (bytes) => confs.read(bytes),
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
    // Callers on the way up may handle this error in any way.
    throw new CniError(CniCode.tryAgainLater, "Cannot run the call here: it is its caller's", { cause });
  };
  const agedMs = (): number => Math.max(0, (uptimeMs() ?? 0) - call.startedUptimeMs);
  const hosted: HostedCall = {
    call,
    signal: caller.signal,
    agedMs,
    pass: () => end({ t: "pass" }),
    lose: (cause) => end({ t: "lost" }, cause),
    take(timeoutMs) {
      const moreMs = Math.floor(timeoutMs - agedMs());
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
