import { debianPlugins } from "../conformance/plugin.ts";
import { startCommand } from "./cni-call.ts";
import type { NetworkNamespace } from "./network-namespace.ts";

export interface HostPort {
  /** The pod's namespace, as a path. */
  readonly netns: string;
  /** The pod's IPv4 address, with its prefix length. */
  readonly address: string;
  readonly hostPort: number;
  readonly containerPort: number;
}

/**
 * Has the real portmap lead a port of the node to a pod, with `snat`, so that the node reaches it by 127.0.0.1 too: for
 * that it turns `route_localnet` on at the interface that leads to the pod.
 * @throws with what the plugin said
 */
export async function addHostPort(
  node: NetworkNamespace,
  { netns, address, hostPort, containerPort }: HostPort,
): Promise<void> {
  const conf = {
    cniVersion: "1.0.0",
    name: "pods",
    type: "portmap",
    snat: true,
    runtimeConfig: { portMappings: [{ hostPort, containerPort, protocol: "tcp" }] },
    prevResult: {
      cniVersion: "1.0.0",
      interfaces: [{ name: "eth0", sandbox: netns }],
      ips: [{ address, interface: 0 }],
    },
  };
  const env = {
    CNI_COMMAND: "ADD",
    CNI_CONTAINERID: "hostport",
    CNI_NETNS: netns,
    CNI_IFNAME: "eth0",
    CNI_PATH: debianPlugins,
  };
  const running = node.within(() => startCommand([`${debianPlugins}/portmap`], env, JSON.stringify(conf)));
  const { status, stdout, stderr } = await running.ended;
  if (status !== 0) throw new Error(`Cannot map port ${hostPort}: ${stderr}${stdout}`);
}
