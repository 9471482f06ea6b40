export const windowsPaths = {
  agentSocket: "\\\\.\\pipe\\pipette-cni",
  ipamSocket: "\\\\.\\pipe\\pipette-ipam",
  dataDir: "C:\\ProgramData\\pipette",
  /** Of host-local, where no `dataDir` is configured: it means the root of the runtime's drive. */
  hostLocalDataDir: "C:\\var\\lib\\cni\\networks",
  agentConfig: "C:\\ProgramData\\pipette\\agent.yaml",
  cniConfDir: "C:\\Program Files\\containerd\\cni\\conf",
  cniBinDir: "C:\\Program Files\\containerd\\cni\\bin",
  executableSuffix: ".exe",
  /** Between the directories in CNI_PATH. */
  pathListSeparator: ";",
  directorySeparator: "\\",
  /** With a drive or a share; `\dir` would mean another place on every drive. */
  isAbsolute: (path: string): boolean => /^[A-Za-z]:[\\/]|^\\\\[^\\]/.test(path),
} as const;
