/** The HTTPS API that agents and operators ask. */
export { type Access, ControlPlaneApi } from "./control-plane-api.ts";
export { PolicyReports } from "./policy-reports.ts";
export type { ServedState } from "./served-state.ts";
