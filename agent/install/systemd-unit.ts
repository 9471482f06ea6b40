import type { ServiceDefinition } from "./service-steps.ts";

/** The text of conf/pipette-agent.service, for this executable and configuration; a test holds the two together. */
export const unitText = ({ executable, configFile }: ServiceDefinition): string => `[Unit]
Description=Pipette node agent
Documentation=file:/usr/share/doc/pipette/operations.md
# The runtime starts pods from the configuration file that the agent writes, and keeps it over a restart.
Before=containerd.service crio.service kubelet.service
After=network-pre.target
Wants=network-pre.target
StartLimitIntervalSec=0

[Service]
Type=notify
NotifyAccess=main
# From end to end before anything of it runs: pages that come in one by one, by page faults, make every later start of
# the plugin, which is the same file, a tenth slower.
ExecStartPre=-/bin/dd ${word(`if=${executable}`)} of=/dev/null bs=1M status=none
ExecStart=${word(executable)} agent --config ${word(configFile)}
Restart=always
RestartSec=1
TimeoutStartSec=60
# More than drainTimeoutMs.
TimeoutStopSec=20
# SIGTERM for the agent alone, so that a helper that it runs can finish; what is left then is killed.
KillMode=mixed
RuntimeDirectory=pipette
RuntimeDirectoryMode=0750
# The lock file and the address of the socket must outlive a restart.
RuntimeDirectoryPreserve=yes
StateDirectory=pipette
StateDirectoryMode=0700
UMask=0077
OOMScoreAdjust=-900
LimitNOFILE=65536

# Nothing here makes a mount namespace (ProtectSystem=, PrivateTmp=, ReadOnlyPaths=, …): the agent opens network
# namespaces that the runtime mounts while it runs. MemoryDenyWriteExecute= would forbid the JavaScript compiler,
# RestrictNamespaces= the entering of pods, ProtectKernelTunables= the switch for forwarding.
NoNewPrivileges=yes
# NET_ADMIN: links, addresses, routes, nftables. NET_RAW: announcing a pod's addresses. SYS_ADMIN: entering pods' namespaces.
# SYS_PTRACE and DAC_OVERRIDE: namespaces and files of others than root.
CapabilityBoundingSet=CAP_NET_ADMIN CAP_NET_RAW CAP_SYS_ADMIN CAP_SYS_PTRACE CAP_DAC_OVERRIDE
RestrictAddressFamilies=AF_UNIX AF_NETLINK AF_INET AF_INET6 AF_PACKET
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
SystemCallArchitectures=native

[Install]
WantedBy=multi-user.target
`;

/** A word of a command line of systemd (systemd.service(5), systemd.unit(5)): `%` and `$` would stand for something. */
function word(text: string): string {
  const escaped = text.replaceAll("%", "%%").replaceAll("$", "$$$$");
  return /^[\w/.:=%$@+-]+$/.test(escaped) ? escaped : `"${escaped.replace(/[\\"]|\p{Cc}/gu, quoted)}"`;
}

/** A line's end would end the assignment, and begin the next one. */
const quoted = (char: string): string =>
  char === "\\" || char === '"' ? `\\${char}` : `\\x${char.charCodeAt(0).toString(16).padStart(2, "0")}`;
