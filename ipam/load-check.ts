/** The database's own check, its repair, and a look at its leases; loaded apart from the rest, as the commands are. */
export const loadCheck = () => import("./check/mod.ts");

/** Which keys of an `ipam` section nobody reads: asked by checks only. */
export const loadUnknownKeys = () => import("./config/unknown-keys.ts");
