import { paths } from "../shared/os/paths.ts";

/** Where the database of a data directory lies. */
export const databaseIn = (dataDir: string): string => `${dataDir}${paths.directorySeparator}leases.db`;

/** The directory beside a database in which its successor is made. */
export const rebuildDirectoryOf = (database: string): string => `${database}.rebuilding`;
