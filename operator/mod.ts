/** The operator's tool: documents of nodes and of the cluster, by a socket, by an API server, or from a bundle. */
export { archiveOf, writeBundle } from "./bundle/archive.ts";
export { collect, type Item } from "./bundle/collect.ts";
export { agentPodItems, clusterItems, documentItems } from "./bundle/items.ts";
export { Redactor } from "./bundle/redact.ts";
export { theNode } from "./commands/chosen-nodes.ts";
export { getCommand } from "./commands/get-command.ts";
export { logLevelCommand } from "./commands/log-level-command.ts";
export { type Answer, type DocumentSource, maxWaitMs, type Question } from "./document-source.ts";
export { documentsOfNode } from "./node-report.ts";
export { asData, formOf, outputOption } from "./output.ts";
export { SocketSource } from "./socket-source.ts";
export { acrossOptions, printTrace, secondsIn } from "./trace/trace-across.ts";
export { openSource, type Way, wayOptions } from "./ways.ts";
export type { Asked, Facts, PodName, Statement, Verdict } from "./why/facts.ts";
export { gather, type LocalNode, type WhoCanBeAsked } from "./why/gather.ts";
export { judge, verdictObject, verdictText } from "./why/judge.ts";
