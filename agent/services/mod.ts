/** Services on a node: where they come from, who answers for each, and what the data path is to balance. */
export type { NodeServices } from "./node-services.ts";
export { openServices } from "./open-services.ts";
export { serviceFileSchema } from "./service-file.ts";
export type { Sender, Traced } from "./trace-service.ts";
