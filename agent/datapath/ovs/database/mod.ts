/**
 * The node's ports in the switch's database, for readers such as the doctor, without the parts that change the switch.
 */
export { ownerOf, type PortRole, parseIdentity, roleOf } from "./port-identity.ts";
export { bridgeNamed, interfaceNamed, openDatabase, portsOf } from "./switch-database.ts";
