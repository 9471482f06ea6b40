/** Commands to ovs-vswitchd itself, as ovs-appctl(8) gives them, for what neither its database nor OpenFlow offers. */
export { controlPlaces } from "./control-places.ts";
export { type Control, openControl } from "./control-socket.ts";
