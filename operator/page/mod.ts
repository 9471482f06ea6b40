/** The page of `pipette ui`: its server, which only this machine reaches, and what it may have run. */
export { type CommandPlaces, type OwnProgram, PageCommands } from "./page-commands.ts";
export { pageFiles } from "./page-files.ts";
export { type PageParts, PageServer } from "./page-server.ts";
export { uiCommand } from "./ui-command.ts";
