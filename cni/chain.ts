import type { CniRequest } from "../shared/cni/dispatch.ts";
import { encodeResult, parseResult, parseResultText } from "../shared/cni/result.ts";
import type { CniResult } from "../shared/cni/types.ts";
import type { CniVersion } from "../shared/cni/versions.ts";

/**
 * `prevResult` of the configuration; absent for the first plugin of a chain.
 * @throws {CniError} code 7, naming the field that will not do
 */
export function previousResult(request: CniRequest): CniResult | undefined {
  const fields = request.conf.object("prevResult");
  if (fields === undefined) return undefined;
  const result = parseResult(fields, request.version);
  const { ifname } = request.env;
  const taken =
    request.env.command === "ADD" && result.interfaces.some((i) => i.sandbox !== undefined && i.name === ifname);
  if (taken)
    throw fields.wrong("interfaces", ifname, `no sandbox interface "${ifname}" before this plugin has made it`);
  return result;
}

/**
 * A plugin that is not the first of its chain outputs what it was given and adds its own
 * (specification 1.1.0, "ADD": `prevResult` must be passed through).
 * @param text our result in `version`
 */
export function appended(previous: CniResult, text: string, version: CniVersion): string {
  const own = parseResultText(text, version, "agent's result");
  const before = previous.interfaces.length;
  const ips = own.ips.map((ip) => (ip.interface === undefined ? ip : { ...ip, interface: ip.interface + before }));
  return encodeResult(
    {
      interfaces: [...previous.interfaces, ...own.interfaces],
      ips: [...previous.ips, ...ips],
      routes: [...previous.routes, ...own.routes],
      dns: Object.keys(own.dns).length > 0 ? own.dns : previous.dns,
    },
    version,
  );
}
