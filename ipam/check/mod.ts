/** What `pipette ipam check` is made of, for others that look at a database which they have not opened. */
export { databaseIn } from "../data-directory.ts";
export { repairStore } from "../store/repair-store.ts";
export { StoreSnapshot } from "../store/store-snapshot.ts";
export { checkDatabase } from "./check-store.ts";
export { requireRights } from "./require-rights.ts";
