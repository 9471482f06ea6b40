export const linuxPaths = {
  /** Directory 0750, socket 0700. */
  agentSocket: "/var/run/pipette/cni.sock",
  /** Of the allocator by itself, with the same rights. */
  ipamSocket: "/var/run/pipette/ipam.sock",
  dataDir: "/var/lib/pipette",
  /** Of host-local, where no `dataDir` is configured. */
  hostLocalDataDir: "/var/lib/cni/networks",
  agentConfig: "/etc/pipette/agent.yaml",
  cniConfDir: "/etc/cni/net.d",
  cniBinDir: "/opt/cni/bin",
  /** What the small program in the directory above becomes where no daemon answers (forward/README.md). */
  wholeProgram: "/usr/libexec/pipette/pipette",
  executableSuffix: "",
  /** Between the directories in CNI_PATH. */
  pathListSeparator: ":",
  directorySeparator: "/",
  isAbsolute: (path: string): boolean => path.startsWith("/"),
  /** Whether a network configuration may name this path for root to read or write. */
  isLocal: (path: string): boolean => path.startsWith("/") && !path.includes("\0"),
  localRule: "an absolute path",
  /** Whether a file can have this name, which has no separators. */
  isFileName: (_name: string): boolean => true,
} as const;
