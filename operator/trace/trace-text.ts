import type { TraceDocument } from "../../shared/documents/mod.ts";
import { printable } from "../../shared/printable.ts";
import { formatTable } from "../../shared/terminal/table.ts";

/** For people: each node with what it has decided, and where the packet has ended. */
export function traceText({
  mode,
  source,
  destination,
  packet,
  nodes,
  verdict,
  lastSeenAt,
  remarks,
  ...trace
}: TraceDocument): string {
  const start = nodes[0]?.steps[0]?.atMs ?? trace.startedAtMs;
  const what = mode === "injected" ? "an injected packet" : "a real connection's first packet";
  const head = `${source} to ${destination}: ${packet === undefined ? what : `${what}, ${packetText(packet)}`}`;
  const parts = nodes.map(({ node, role, dataPath, steps }) => {
    const rows = steps.map(({ table, action, text, atMs }) => [
      `+${atMs - start} ms`,
      table,
      actionWords[action],
      text,
    ]);
    return `node ${node} (${role}; ${printable(dataPath)})\n${formatTable([["AT", "TABLE", "ACTION", "WHAT"], ...rows])}`;
  });
  const isOpen = ["lost", "unknown", "forwarded"].includes(verdict.t);
  const last =
    isOpen && lastSeenAt !== undefined
      ? [`last seen at node ${lastSeenAt.node}, table ${lastSeenAt.table}: ${lastSeenAt.text}`]
      : [];
  // Each in a line of its own, whatever an agent says.
  const ending = [verdict.text, ...last, ...remarks.map((one) => `(${one})`)].map(printable);
  return `${[printable(head), "", ...parts, ...ending].join("\n")}\n`;
}

const actionWords = {
  received: "received",
  forwarded: "forwarded",
  delivered: "delivered",
  dropped: "dropped",
  rejected: "rejected",
  forwardedOutOfNetwork: "leaves the network",
} as const;

function packetText(packet: NonNullable<TraceDocument["packet"]>): string {
  const place = (address: string, port: number | undefined): string =>
    port === undefined ? address : packet.family === "IPv4" ? `${address}:${port}` : `[${address}]:${port}`;
  const { source, sourcePort, destination, destinationPort, protocol } = packet;
  return `${protocol.toUpperCase()} ${place(source, sourcePort)} to ${place(destination, destinationPort)}`;
}
