/** The one place that asks which system this is; a compiled executable has the answer built in. */
export const isWindows = process.platform === "win32";

/** Whether this machine runs systemd (sd_booted(3)); inside a pod that is not visible. */
export const hasSystemd = (): boolean => process.getBuiltinModule("node:fs").existsSync("/run/systemd/system");
