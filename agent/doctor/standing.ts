import { loadCheck, readBootId } from "../../ipam/mod.ts";
import { createLogger } from "../../shared/log.ts";
import type { AgentConfig } from "../config/agent-config.ts";
import { openRegistry } from "../nodes/open-registry.ts";
import { conflistFindings } from "./configuration.ts";
import type { Finding } from "./finding.ts";

/** A registry's own calls have deadlines; an answer that takes longer than this is none for a person who waits. */
const registryMs = 8_000;

/** What no call in flight changes: one look at it is enough, and it may cost more. */
export async function standingFindings(config: AgentConfig): Promise<readonly Finding[]> {
  return [
    ...(await databaseFindings(config.dataDir)),
    ...(await conflistFindings(config)),
    ...(await registryFindings(config)),
  ];
}

/** As `pipette ipam check` has them, rights aside, which the files' own check tells of. */
async function databaseFindings(dataDir: string): Promise<readonly Finding[]> {
  const { checkDatabase, databaseIn, requireRights } = await loadCheck();
  const path = databaseIn(dataDir);
  requireRights(path);
  const report = await checkDatabase(path, { nowMs: Date.now(), bootId: readBootId() });
  if (report === undefined)
    return [
      {
        severity: "note",
        code: "no-database",
        what: `There is no "${path}"`,
        why: "No address was ever given out here, or the agent works in another data directory",
        todo: 'start the agent, or compare "dataDir" in agent.yaml with where the leases are',
        evidence: path,
      },
    ];
  return report.findings
    .filter(({ code }) => code !== "open-to-others" && code !== "earlier-boot")
    .map(({ repairable, network: _network, ...finding }) => ({
      ...finding,
      evidence: "",
      ...(repairable === true ? { repair: { t: "database" } as const } : {}),
    }));
}

async function registryFindings({ nodes }: AgentConfig): Promise<readonly Finding[]> {
  if (nodes === undefined) return [];
  try {
    await using registry = await openRegistry(
      nodes,
      createLogger("error", () => undefined),
    );
    const listed = await inTime(registry.list());
    const rights = (await registry.excessRights?.()) ?? [];
    return [
      ...(listed.some(({ name }) => name === nodes.name) ? [] : [unlisted(nodes.name, registry.name)]),
      ...rights.map(excessRight),
    ];
  } catch (caught) {
    return [
      {
        severity: "error",
        code: "registry-unreachable",
        what: "The registry of nodes does not answer",
        why: `A node that has not joined gets no subnet, and changes of other nodes are not heard of (${caught instanceof Error ? caught.message : String(caught)})`,
        todo: 'see that it runs and that section "nodes" of agent.yaml names it; pods of known nodes go on meanwhile',
        evidence: nodes.name,
      },
    ];
  }
}

/** The time that is not needed is not waited for: it would keep the process. */
async function inTime<T>(answer: Promise<T>): Promise<T> {
  const late = Promise.withResolvers<never>();
  const is = new Error(`no answer within ${registryMs / 1000} seconds`);
  const timer = setTimeout(() => late.reject(is), registryMs);
  try {
    return await Promise.race([answer, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

const unlisted = (name: string, registry: string): Finding => ({
  severity: "error",
  code: "not-registered",
  what: `This node, "${name}", is not in ${registry}`,
  trusts: "the registry",
  why: "Other nodes do not know the way to its pods, and its subnet can be given to another",
  todo: 'start the agent, which joins; look at "pipette nodes list"',
  evidence: name,
});

const excessRight = (what: string): Finding => ({
  severity: "note",
  code: "registry-rights",
  what: `With what this node has, ${what}`,
  why: "Whoever takes over one node, or reaches etcd where it asks nobody for a name, has the same rights",
  todo: "give etcd users and roles, as conf/etcd-roles.sh does",
  evidence: what,
});
