/** Names and numbers for reading flows, for code that inspects a switch and makes no flows. */
export { Priority } from "./build.ts";
export { Category, readCookie } from "./cookie.ts";
export { connectionMarks, Destination, EndpointState, registers, Source, virtualMac } from "./registers.ts";
export { type TableName, tableRoles, tables } from "./tables.ts";
