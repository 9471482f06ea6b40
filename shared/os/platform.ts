/** The one place that asks which system this is; a compiled executable has the answer built in. */
export const isWindows = process.platform === "win32";
