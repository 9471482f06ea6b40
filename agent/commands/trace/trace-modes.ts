import { formOf, openSource, printTrace, secondsIn } from "../../../operator/mod.ts";
import { CniCode, CniError } from "../../../shared/errors.ts";
import type { CommandLine } from "../../../shared/terminal/command.ts";
import { exitStatus } from "../../../shared/terminal/exit-status.ts";
import { printable } from "../../../shared/terminal/printable.ts";
import type { TerminalIo } from "../../../shared/terminal/terminal-io.ts";
import type { Protocol } from "./packet.ts";
import type { traceOptions } from "./trace-options.ts";

type Given = CommandLine<typeof traceOptions>["options"];

/** What of a packet is asked for. */
interface PacketWanted {
  readonly protocol?: "icmp" | "tcp" | "udp";
  readonly port?: number;
}

/** @throws {CniError} 7 where options contradict one another */
export function packetWanted({ tcp, udp, icmp, protocol, port }: Given): PacketWanted {
  const named = [tcp !== undefined, udp !== undefined, icmp, protocol !== undefined || port !== undefined];
  if (named.filter(Boolean).length > 1)
    throw wrong("there is more than one of --tcp, --udp, --icmp and --protocol with --port");
  if (tcp !== undefined) return { protocol: "tcp", port: Number(tcp) };
  if (udp !== undefined) return { protocol: "udp", port: Number(udp) };
  if (icmp) return { protocol: "icmp" };
  if (protocol === "icmp" && port !== undefined) throw wrong("ICMP has no ports, wanted no --port");
  return {
    ...(protocol === "icmp" || protocol === "tcp" || protocol === "udp" ? { protocol } : {}),
    ...(port === undefined ? {} : { port: Number(port) }),
  };
}

/** As the switch's own tracer is asked for it. @throws {CniError} 7 */
export function simulated({ protocol, port }: PacketWanted): Protocol {
  if (port === undefined) {
    if (protocol === undefined || protocol === "icmp") return { t: "icmp" };
    throw wrong(`${protocol} needs a port, wanted --port`);
  }
  return { t: protocol === "udp" ? "udp" : "tcp", port };
}

/** @throws {CniError} 7 for what only agents can do */
export function requireSimulated(given: Given): void {
  const names = ["dropped", "follow", "family", "socket", "kubeconfig", "context", "agents-namespace"] as const;
  const one = names.find((name) => given[name] !== undefined && given[name] !== false);
  if (one !== undefined) throw wrong(`"--${one}" is there, wanted it with --inject or --live, which ask agents`);
}

/** @returns the exit status, also for options that contradict one another */
export async function traceByAgents(ends: Ends, given: Given, io: TerminalIo): Promise<number> {
  let request: AcrossRequest;
  try {
    request = requestOf(ends, given);
  } catch (caught) {
    io.stderr(`${printable(CniError.from(caught).message)}\n`);
    return exitStatus.wrongArguments;
  }
  const form = given.json ? "json" : formOf(given.output);
  return await printTrace(() => openSource({ ...given, bundle: undefined }, false, io), request, form, io);
}

interface Ends {
  readonly from: string;
  readonly to: string;
}

type AcrossRequest = Parameters<typeof printTrace>[1];

/** @throws {CniError} 7 */
function requestOf(ends: Ends, given: Given): AcrossRequest {
  const { inject, live, simulate, dropped, follow, family } = given;
  if ([inject, live, simulate].filter(Boolean).length > 1)
    throw wrong("there is more than one of --inject, --live and --simulate");
  const ofSwitch = ["reply", "raw", "from-tunnel", "tunnel-key", "as-ip", "as-mac", "control", "config"] as const;
  const strange = ofSwitch.find((name) => given[name] !== undefined && given[name] !== false);
  if (strange !== undefined)
    throw wrong(`"--${strange}" is for the switch of this node, wanted it without --inject and --live`);
  if (inject && (dropped || follow !== undefined))
    throw wrong("an injected packet is not waited for, wanted --live with --dropped and --follow");
  if (live && family !== undefined) throw wrong("real connections are of both families, wanted --inject with --family");
  return {
    ...ends,
    ...packetWanted(given),
    mode: inject ? "inject" : "live",
    dropped,
    seconds: secondsIn(follow ?? "1m") ?? 60,
    ...(family === undefined ? {} : { family: family === "6" ? 6 : 4 }),
  };
}

const wrong = (is: string): CniError => new CniError(CniCode.invalidConfig, `Cannot trace the packet: ${is}`);
