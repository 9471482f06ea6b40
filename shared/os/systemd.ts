/** Whether systemd runs this machine (sd_booted(3)), as far as this process sees it: a pod does not. */
export const hasSystemd = (): boolean => process.getBuiltinModule("node:fs").existsSync("/run/systemd/system");
