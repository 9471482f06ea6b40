/** What an operator sees of this node: documents, made of what the agent has. */
export { documentRpcs, type LogLevels } from "./document-service.ts";
export { answerOperator, type Documents } from "./operator-requests.ts";
export { TraceSessions } from "./trace-sessions.ts";
export type { Examined } from "./view-sources.ts";
export { type DocumentQuestion, type MadeDocument, Views } from "./views.ts";
