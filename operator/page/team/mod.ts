/** The page that the controller serves to a team: who signs in, and what each of them may see. */
export { ClusterSource } from "../../cluster/cluster-source.ts";
export { pageFiles } from "../page-files.ts";
export { accessAs, commandsFor, oneAfterTheOther, type ProgramFor } from "./person-commands.ts";
export { TeamPage } from "./team-page.ts";
