export const windowsPaths = {
  agentSocket: "\\\\.\\pipe\\pipette-cni",
  dataDir: "C:\\ProgramData\\pipette",
  agentConfig: "C:\\ProgramData\\pipette\\agent.yaml",
  cniConfDir: "C:\\Program Files\\containerd\\cni\\conf",
  /** Between the directories in CNI_PATH. */
  pathListSeparator: ";",
  directorySeparator: "\\",
} as const;
