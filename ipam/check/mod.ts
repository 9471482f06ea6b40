/** The checks of `pipette ipam check`, for others that examine a database without opening an allocator. */
export { databaseIn } from "../data-directory.ts";
export { repairStore } from "../store/repair-store.ts";
export { StoreSnapshot } from "../store/store-snapshot.ts";
export { checkDatabase, requireRights } from "./check-store.ts";
