import { loadCheck, readBootId } from "../../../ipam/mod.ts";
import { withTimeout } from "../../../shared/async/with-timeout.ts";
import { createLogger } from "../../../shared/log.ts";
import { reasonOf } from "../../../shared/reason.ts";
import { nodesByAgent } from "../../cluster/ask-agent.ts";
import { listNodes, type NodeListing } from "../../cluster/listing.ts";
import { openRegistry } from "../../cluster/open-registry.ts";
import type { AgentConfig, NodesConfig } from "../../config/agent-config.ts";
import { conflistFindings } from "./conflist-findings.ts";
import type { Finding } from "./finding.ts";

/** How long a waiting person gives the registry; its own calls have longer deadlines. */
const registryMs = 8_000;

/** Findings that running calls do not affect: one check is enough, and it may cost more. */
export async function singleLookFindings(config: AgentConfig): Promise<readonly Finding[]> {
  return [
    ...(await databaseFindings(config.dataDir)),
    ...(await conflistFindings(config)),
    ...(await registryFindings(config)),
  ];
}

/** The findings of `pipette ipam check`, without rights, which the check of files reports. */
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

/**
 * By way of the agent, because only its pod may have the registry's address and credentials; without an agent the
 * registry is asked directly.
 */
async function registryFindings({ nodes, socket }: AgentConfig): Promise<readonly Finding[]> {
  if (nodes === undefined) return [];
  let asked = "asked by the agent";
  try {
    const answer = await nodesByAgent(socket, { rights: true });
    if (answer.t === "none") asked = `asked without the agent: ${answer.why}`;
    const {
      self,
      name: registry,
      nodes: listed,
      excessRights,
    } = answer.t === "agent" ? answer.is : await itself(nodes);
    return [
      ...(listed.some(({ name }) => name === self) ? [] : [unlisted(self, registry)]),
      ...excessRights.map(excessRight),
    ];
  } catch (caught) {
    return [unreachable(nodes.name, `${asked}; ${reasonOf(caught)}`)];
  }
}

async function itself(nodes: NodesConfig): Promise<NodeListing & { readonly self: string }> {
  const logger = createLogger("error", () => undefined);
  await using registry = await openRegistry(nodes, logger);
  return { ...(await withTimeout(listNodes(registry, { rights: true }), registryMs, late)), self: nodes.name };
}

const unreachable = (self: string, reason: string): Finding => ({
  severity: "error",
  code: "registry-unreachable",
  what: "The registry of nodes does not answer",
  why: `A node that has not joined gets no subnet, and changes of other nodes are not heard of (${reason})`,
  todo: 'see that it runs and that section "nodes" of agent.yaml names it; pods of known nodes go on meanwhile',
  evidence: self,
});

const late = (): never => {
  throw new Error(`no answer within ${registryMs / 1000} seconds`);
};

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
