import { ApiClient, serviceAccountAccess } from "../../shared/kubernetes/mod.ts";
import type { Logger } from "../../shared/log.ts";
import type { AgentConfig, ServicesConfig } from "../config/agent-config.ts";
import { nameOf } from "../config/nodes-config.ts";
import type { ServiceProxy } from "../datapath/services.ts";
import type { AgentMeter } from "../metrics/meter.ts";
import { ClusterServices } from "./cluster-services.ts";
import { NodeServices, type NodeServicesOptions } from "./node-services.ts";
import { followServiceFile } from "./service-file.ts";
import type { ServiceSource } from "./service-source.ts";

type Events = NonNullable<NodeServicesOptions["events"]>;
type WithServices = AgentConfig & { readonly services: ServicesConfig };

/**
 * The services that the configuration names, for this data path; nothing is in force before they begin.
 * @throws {CniError} 7
 */
export function openServices(
  config: WithServices,
  proxy: ServiceProxy,
  logger: Logger,
  { events, meter }: { readonly events?: Events | undefined; readonly meter?: AgentMeter | undefined } = {},
): NodeServices {
  const { services, nodes } = config;
  const node = nodes?.name ?? nameOf({});
  return new NodeServices({
    ...{ node, proxy, logger, meter, source: openSource(config, node, logger) },
    config: services,
    ...(events === undefined ? {} : { events }),
  });
}

function openSource({ services, networks }: WithServices, node: string, logger: Logger): ServiceSource {
  const { file } = services;
  if (file !== undefined)
    return followServiceFile({ path: file, podSubnets: networks.flatMap(({ subnets }) => subnets), logger });
  const client = new ApiClient(serviceAccountAccess(services, process.env, "services.server"), { env: process.env });
  return new ClusterServices({ client, node, logger });
}
