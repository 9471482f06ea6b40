/** What commands of other rooms have in common with those that show documents; without their tables and sources. */
export { formOf, nodesAsData, outputOption } from "../output.ts";
export { showNodes, watchOption } from "./show-nodes.ts";
