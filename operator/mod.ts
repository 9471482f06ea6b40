/** The operator's tool: documents of nodes and of the cluster, by a socket, by an API server, or from a bundle. */

export type { NodeFailure } from "./ask-nodes.ts";
export { archiveOf } from "./bundle/archive.ts";
export { BundleFile } from "./bundle/bundle-file.ts";
export { apiItems, podItems } from "./bundle/cluster-items.ts";
export { collect, type Item } from "./bundle/collect.ts";
export { clusterItems, documentItems } from "./bundle/items.ts";
export { limits as bundleLimits } from "./bundle/limits.ts";
export { Redactor } from "./bundle/redact.ts";
export { listAgentPods, listControllerPods } from "./cluster/agent-pods.ts";
export { ClusterSource } from "./cluster/cluster-source.ts";
export { chosenNodes } from "./commands/chosen-nodes.ts";
export { getCommand } from "./commands/get-command.ts";
export { logLevelCommand } from "./commands/log-level-command.ts";
export { type Answer, type DocumentSource, maxWaitMs, type Question } from "./document-source.ts";
export type { NodeSaid } from "./node-report.ts";
export { asData, asTable, formOf, type OutputForm, outputOption } from "./output.ts";
export { SocketSource } from "./socket-source.ts";
export { tables } from "./tables/tables.ts";
export { acrossOptions, printTrace, secondsIn } from "./trace/trace-across.ts";
export { openSource, type Way, wayOptions } from "./ways.ts";
export type { Asked, Facts, PodName, RuntimeSays, Statement, Verdict } from "./why/facts.ts";
export { gather, type LocalNode, type WhoCanBeAsked } from "./why/gather.ts";
export { judge, verdictObject, verdictText } from "./why/judge.ts";
