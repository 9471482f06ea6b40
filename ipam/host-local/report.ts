import { formatIp } from "../../shared/net/ip.ts";
import { printable } from "../../shared/printable.ts";
import type { ImportReport } from "./import.ts";

/** Of a long list the log gets the beginning; the command shows all of it. */
const maxLines = 20;

/**
 * What an import did, in sentences: first the whole, then each entry that was not taken.
 * @param limit of the entries of each kind
 */
export function describeImport(report: ImportReport, limit = maxLines): readonly string[] {
  const { directory, network, taken, already, released, dropped, clashes, unreadable } = report;
  const parts = [
    `${taken} taken over`,
    ...(already > 0 ? [`${already} known already`] : []),
    ...(released > 0 ? [`${released} left out, which were released since they were taken over`] : []),
    ...(dropped > 0 ? [`${dropped} given up, which host-local has released`] : []),
    ...(clashes.length > 0 ? [`${clashes.length} left to their other holder`] : []),
    ...(unreadable.length > 0 ? [`${unreadable.length} unreadable`] : []),
  ];
  const clashLines = clashes.map(({ ip, theirs, ours }) => {
    const [name, holder] = [theirs.containerId, ours.owner.sandboxId];
    return `"${formatIp(ip)}" of "${name}" (${theirs.ifname || "any interface"}) was not taken over: it is held by "${holder}" (${ours.owner.ifname}), ${ours.state}`;
  });
  const unreadableLines = unreadable.map(({ file, reason }) => `"${directory}/${file}" was not understood: ${reason}`);
  const lines = [
    `Leases of host-local in "${directory}" for network "${network}": ${parts.join(", ")}`,
    ...shortened(clashLines, limit),
    ...shortened(unreadableLines, limit),
  ];
  // Names of files may hold anything but a slash.
  return lines.map(printable);
}

const shortened = (lines: readonly string[], limit: number): readonly string[] =>
  lines.length <= limit ? lines : [...lines.slice(0, limit), `… and ${lines.length - limit} more`];
