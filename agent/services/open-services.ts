import { CniCode, CniError } from "../../shared/errors.ts";
import type { Logger } from "../../shared/log.ts";
import type { AgentConfig, ServicesConfig } from "../config/agent-config.ts";
import type { ServiceProxy } from "../datapath/services.ts";
import { NodeServices } from "./node-services.ts";
import { followServiceFile } from "./service-file.ts";
import type { ServiceSource } from "./service-source.ts";

/**
 * The services that the configuration names, for this data path; nothing is in force before they begin.
 * @throws {CniError} 7
 */
export function openServices(
  config: AgentConfig & { readonly services: ServicesConfig },
  proxy: ServiceProxy,
  logger: Logger,
): NodeServices {
  return new NodeServices({ source: openSource(config, logger), proxy, logger });
}

function openSource(
  { services, networks }: AgentConfig & { readonly services: ServicesConfig },
  logger: Logger,
): ServiceSource {
  const { file } = services;
  if (file === undefined)
    throw new CniError(CniCode.invalidConfig, 'Cannot follow services: "services.from" is "cluster", wanted "file"');
  return followServiceFile({ path: file, podSubnets: networks.flatMap(({ subnets }) => subnets), logger });
}
