import { debianPlugins, executables } from "../conformance/plugin.ts";
import { type CniCall, callPlugin, runPlugin } from "../support/cni-call.ts";

export const pipetteIpam = `${executables}/pipette-ipam`;

/** One verb of `pipette-ipam` by itself, or of a main plugin that finds it in CNI_PATH. */
export function ipamCall(verb: string, containerId: string, conf: unknown, more: Partial<CniCall> = {}): CniCall {
  return {
    executable: pipetteIpam,
    conf,
    ...more,
    env: {
      CNI_COMMAND: verb,
      CNI_CONTAINERID: containerId,
      CNI_NETNS: "/run/netns/pt-ipam-none",
      CNI_IFNAME: "eth0",
      CNI_PATH: `${debianPlugins}:${executables}`,
      CNI_ARGS: "IgnoreUnknown=1",
      ...more.env,
    },
  };
}

/** The same, run to its end, which must be success; its result as JSON. */
export async function mustSucceed(call: CniCall): Promise<{ readonly ips?: readonly { readonly address: string }[] }> {
  const { stdout } = await callPlugin(call);
  return stdout === "" ? {} : JSON.parse(stdout);
}

export { runPlugin as runCall };
