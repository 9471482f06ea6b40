/** Names of DOS devices, in every directory and with any extension, as before Windows 11. */
const device = /^(con|prn|aux|nul|com[0-9\u00b9\u00b2\u00b3]|lpt[0-9\u00b9\u00b2\u00b3]|conin\$|conout\$)(\..*)?$/i;
const isFileName = (name: string): boolean => !device.test(name) && !/[. ]$/.test(name);

export const windowsPaths = {
  agentSocket: "\\\\.\\pipe\\pipette-cni",
  ipamSocket: "\\\\.\\pipe\\pipette-ipam",
  dataDir: "C:\\ProgramData\\pipette",
  /** host-local's default `dataDir`, on the drive of the runtime. */
  hostLocalDataDir: "C:\\var\\lib\\cni\\networks",
  agentConfig: "C:\\ProgramData\\pipette\\agent.yaml",
  cniConfDir: "C:\\Program Files\\containerd\\cni\\conf",
  cniBinDir: "C:\\Program Files\\containerd\\cni\\bin",
  wholeProgram: "C:\\Program Files\\Pipette\\pipette.exe",
  executableSuffix: ".exe",
  /** Between the directories in CNI_PATH. */
  pathListSeparator: ";",
  directorySeparator: "\\",
  /** With a drive or a share; `\dir` alone depends on the current drive. */
  isAbsolute: (path: string): boolean => /^[A-Za-z]:[\\/]|^\\\\[^\\]/.test(path),
  /**
   * On a drive, because opening a share would log in there with the machine's account. Not a stream of a file (`a:b`),
   * which no listing shows, and no device.
   */
  isLocal: (path: string): boolean =>
    /^[A-Za-z]:[\\/][^:\0]*$/.test(path) &&
    path
      .slice(3)
      .split(/[\\/]/)
      .every((name) => name === "" || name === "." || name === ".." || isFileName(name)),
  localRule: "an absolute path on a drive, without streams or devices",
  isFileName,
} as const;
