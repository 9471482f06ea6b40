/** The HTTPS API that agents and operators ask. */
export { type Access, ControlPlaneApi } from "./control-plane-api.ts";
export type { ServedState } from "./served-state.ts";
