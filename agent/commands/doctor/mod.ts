/** `pipette doctor`: compares everything on this node that says which pods there are, and repairs what disagrees. */
export { doctorCommand } from "./doctor-command.ts";
