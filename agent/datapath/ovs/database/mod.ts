/** What the switch's database says of the node's ports: for whoever looks, and loads none of what runs. */
export { ownerOf, type PortRole, parseIdentity, roleOf } from "./port-identity.ts";
export { bridgeNamed, interfaceNamed, openDatabase, portsOf } from "./switch-database.ts";
