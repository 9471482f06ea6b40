import { resolve } from "node:path";
import { CniCode, CniError } from "../../shared/errors.ts";
import { createLogger, logLevels } from "../../shared/log.ts";
import { paths } from "../../shared/os/paths.ts";
import { defineCommand } from "../../shared/terminal/command.ts";
import type { IpamServerConfig } from "../service/mod.ts";
import { ipamConfigOf, type NetworkConf, readNetworkConf } from "./network-conf.ts";
import { confOption, dataDirOption } from "./options.ts";
import { dataDirFor } from "./scope.ts";

export const serve = defineCommand({
  action: "serve the allocator",
  about: `Serves the allocator over gRPC (shared/proto/pipette.proto, service pipette.v1.Ipam, and grpc.health.v1.Health)
until SIGTERM or SIGINT, with its log as JSON lines on stderr. Only root may call it. Where an agent runs, its own
socket serves the same, and knows besides which interfaces stand on the leases.`,
  options: {
    socket: { value: "PATH", of: "file", help: `where it listens (default ${paths.ipamSocket})` },
    "data-dir": dataDirOption,
    conf: {
      ...confOption,
      help: "a network configuration, .conf or .conflist, whose ranges count where a caller brings none",
      repeats: true,
    },
    "log-level": { value: "LEVEL", of: logLevels, help: "least level of what is logged (default info)" },
  },
  exits: { 0: "stopped as asked" },
  run: async ({ options }, io) => {
    const confs = await Promise.all((options.conf ?? []).map((file) => readNetworkConf(file, io)));
    const dataDir = dataDirFor(options["data-dir"], confs[0], io);
    const sections = await sectionsOf(confs, dataDir);
    const { openSystem } = await import("../../shared/server/system.ts");
    const { runDaemon } = await import("../../shared/server/daemon.ts");
    const { ipamServerName: who, startIpamServer } = await import("../service/mod.ts");
    const level = logLevels.find((name) => name === options["log-level"]) ?? "info";
    const logger = createLogger(level, (line) => io.stderr(`${line}\n`));
    const system = await openSystem();
    const config = { socket: resolve(options.socket ?? paths.ipamSocket), dataDir, sections };
    return runDaemon({ who, logger, system, env: io.env }, () => startIpamServer(config, logger, system));
  },
});

/** @throws {CniError} code 7 naming the network */
async function sectionsOf(confs: readonly NetworkConf[], dataDir: string): Promise<IpamServerConfig["sections"]> {
  const sections = new Map<string, Readonly<Record<string, unknown>>>();
  for (const conf of confs) {
    const config = await ipamConfigOf(conf);
    const refuse = (is: string, wanted: string): CniError =>
      new CniError(CniCode.invalidConfig, `Cannot serve network "${conf.network}": ${is}, wanted ${wanted}`);
    if (sections.has(conf.network)) throw refuse("two configurations have this name", "one");
    // Leases in two places would give an address out twice.
    if (config.dataDir !== dataDir)
      throw refuse(`its "ipam.dataDir" is "${config.dataDir}"`, `"${dataDir}", where the service keeps its leases`);
    sections.set(conf.network, conf.conf.object("ipam")?.raw ?? {});
  }
  return sections;
}
