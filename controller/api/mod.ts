/** The HTTPS API that agents and operators ask. */
export { type Access, ControlPlaneApi } from "./control-plane-api.ts";
export { HttpsServer, type ServerTls } from "./https-server.ts";
export type { ServedState } from "./served-state.ts";
