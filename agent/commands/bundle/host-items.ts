import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { loadCheck, loadViews } from "../../../ipam/mod.ts";
import type { Item } from "../../../operator/mod.ts";
import { documentVersion, type FindingsDocument, type LeasesDocument, maxRows } from "../../../shared/documents/mod.ts";
import { version } from "../../../shared/version.ts";
import type { AgentConfig } from "../../config/agent-config.ts";
import { certificateSecrets } from "../../config/certificates-config.ts";
import { wireguardKeyFile } from "../../config/encryption-config.ts";
import { conflistPath } from "../../conflist/conflist.ts";
import { runProgram } from "../../platform/run-program.ts";
import { examine, findingView } from "../doctor/examine.ts";
import { logText } from "../why/this-node.ts";
import { switchPrograms } from "./host-programs.linux.ts";
import { type HostProgram, hostPrograms } from "./host-programs.ts";

/** Of this node. */
export interface HostItemsOptions {
  readonly node: string;
  readonly configFile: string;
  /** Absent: it cannot be read, which its item says. */
  readonly config: AgentConfig | undefined;
  readonly log: string | undefined;
  /** Whether the agent itself makes the documents. */
  readonly hasAgent: boolean;
}

const programMs = 12_000;

/** What this node has without an agent: files, programs' answers, the end of the log; and documents where no agent makes them. */
export function hostItems({ node, configFile, config, log, hasAgent }: HostItemsOptions): readonly Item[] {
  const at = (file: string): string => `nodes/${node}/${file}`;
  const ovs = config?.dataPath === "ovs" ? config.ovs : undefined;
  const programs = [...hostPrograms, ...(ovs === undefined ? [] : switchPrograms(ovs.database, ovs.management))];
  const conflist = config === undefined ? undefined : conflistPath(config);
  return [
    { path: at("versions.json"), work: async () => versions() },
    { path: at("agent.yaml"), work: () => readFile(configFile, "utf8") },
    ...(conflist === undefined ? [] : [{ path: at("network.conflist"), work: () => readFile(conflist, "utf8") }]),
    { path: at("agent.log"), work: () => logText(log), keepsEnd: true },
    ...programs.map((program) => ({ path: at(`host/${program.file}.txt`), work: () => shownBy(program) })),
    ...(hasAgent || config === undefined ? [] : withoutAgent(node, config)),
  ];
}

const versions = (): object => ({ pipette: version, bun: Bun.version, processor: process.arch });

async function shownBy({ line: [program = "", ...args] }: HostProgram): Promise<string> {
  const { stdout, stderr, failure, isAbsent } = await runProgram(program, args, { deadlineMs: programMs });
  if (isAbsent) throw new Error(failure);
  // What it says of a part that it cannot show is worth as much as the rest.
  const rest =
    failure === "" && stderr === "" ? "" : `\n[${[failure, stderr.trim()].filter((one) => one !== "").join(": ")}]\n`;
  if (stdout === "" && failure !== "") throw new Error(`${failure}: ${stderr.trim().slice(0, 300)}`);
  return `$ ${[program, ...args].join(" ")}\n${stdout}${rest}`;
}

/** As the agent's own documents, from the database and the doctor. */
function withoutAgent(node: string, config: AgentConfig): readonly Item[] {
  return [
    { path: `nodes/${node}/leases.json`, work: () => leases(node, config.dataDir) },
    { path: `nodes/${node}/findings.json`, work: () => findings(node, config), withinMs: 30_000 },
  ];
}

async function leases(node: string, dataDir: string): Promise<LeasesDocument> {
  const { StoreSnapshot, databaseIn, requireRights } = await loadCheck();
  const { leaseView } = await loadViews();
  requireRights(databaseIn(dataDir));
  using snapshot = await StoreSnapshot.open(databaseIn(dataDir));
  if (snapshot === undefined) throw new Error(`there is no "${databaseIn(dataDir)}"`);
  const all = [...snapshot.leases()].map(leaseView);
  const head = { kind: "leases", version: documentVersion, node } as const;
  return { ...head, leases: all.slice(0, maxRows), omitted: Math.max(0, all.length - maxRows) };
}

async function findings(node: string, config: AgentConfig): Promise<FindingsDocument> {
  const { findings: found, ...counted } = await examine(config);
  const head = { kind: "findings", version: documentVersion, node } as const;
  return { ...head, ...counted, findings: found.map(findingView), omitted: 0 };
}

/** What is secret on this node, wherever it stands: contents of the files that agent.yaml names, and of the environment. */
export function knownSecrets(
  config: AgentConfig | undefined,
  env: Readonly<Record<string, string | undefined>>,
): string[] {
  const registry = config?.nodes?.registry;
  const files = [
    ...[config?.policies?.token, config?.services?.token],
    ...(registry?.type === "kubernetes" ? [registry.token] : []),
    ...(registry?.type === "etcd" ? [registry.key] : []),
    ...(config?.ovs?.encryption === "ipsec"
      ? [config.ovs.ipsec.pskFile, ...certificateSecrets(config.ovs.ipsec.certificates, config.dataDir)]
      : []),
    ...(config?.ovs?.encryption === "wireguard" ? [wireguardKeyFile(config.dataDir)] : []),
  ];
  const kept = files.flatMap((file) => {
    try {
      return file === undefined ? [] : [readFileSync(file, "utf8")];
    } catch {
      // Where it cannot be read, nothing else has read it.
      return [];
    }
  });
  const secretNames = ["TOKEN", "PASSWORD", "SECRET", "KEY", "CREDENTIAL", "PSK"];
  const variables = Object.entries(env).flatMap(([name, value = ""]) =>
    secretNames.some((word) => name.toUpperCase().includes(word)) ? [value] : [],
  );
  return [...kept, ...variables].filter((one) => one.trim().length > 0);
}
