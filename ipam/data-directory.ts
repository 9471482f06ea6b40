import { paths } from "../shared/os/paths.ts";

/** Path of the database in a data directory. */
export const databaseIn = (dataDir: string): string => `${dataDir}${paths.directorySeparator}leases.db`;

/** The directory beside a damaged database in which its replacement is built. */
export const rebuildDirectoryOf = (database: string): string => `${database}.rebuilding`;
