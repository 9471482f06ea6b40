/** The operator's tool: documents of nodes and of the cluster, by a socket, by an API server, or from a bundle. */
export { getCommand } from "./commands/get-command.ts";
export { type Answer, type DocumentSource, maxWaitMs, type Question } from "./document-source.ts";
export { SocketSource } from "./socket-source.ts";
