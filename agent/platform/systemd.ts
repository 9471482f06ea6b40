import { dirname } from "node:path";
import { hasSystemd } from "../../shared/os/platform.ts";
import { type ServiceDefinition, serviceName } from "./agent-service.ts";
import { runProgram } from "./run-program.ts";

export const unitName = `${serviceName}.service`;

/** systemd, as an installation needs it. */
export interface Systemd {
  /** Of the administrator's units. */
  readonly unitDir: string;
  /** Whether it runs this machine (sd_booted(3)). */
  booted(): Promise<boolean>;
  systemctl(args: readonly string[]): Promise<SystemctlEnded>;
}

/** How one call of `systemctl` ended. */
export interface SystemctlEnded {
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** A start waits for READY=1, at most the unit's TimeoutStartSec, after a stop of at most its TimeoutStopSec. */
const systemctlMs = 120_000;

/** That of this machine. */
export const thisSystemd: Systemd = {
  unitDir: "/etc/systemd/system",
  booted: async () => hasSystemd(),
  systemctl: async (args) => {
    const { status = -1, stdout, stderr, failure } = await runProgram("systemctl", args, { deadlineMs: systemctlMs });
    return { status, stdout, stderr: stderr || failure };
  },
};

/** The text of conf/pipette-agent.service, for this executable and configuration; a test holds the two together. */
export function unitText(definition: ServiceDefinition): string {
  const { executable, configFile } = definition;
  const writable = writableBy(definition);
  return `[Unit]
Description=Pipette node agent
Documentation=file:/usr/share/doc/pipette/docs/operations.md
# The runtime starts pods from the configuration file that the agent writes, and keeps it over a restart.
Before=containerd.service crio.service kubelet.service
After=network-pre.target
Wants=network-pre.target
StartLimitIntervalSec=0

[Service]
Type=notify
NotifyAccess=main
# Before the file system is read-only for all that follows.
ExecStartPre=+/bin/mkdir -p -m 0755 ${writable.map(word).join(" ")}
# From end to end before anything of it runs: pages that come in one by one, by page faults, make every later start of
# it, also as a plugin that finds no agent, a tenth slower.
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

${confinement(writable.map(word).join(" "))}
[Install]
WantedBy=multi-user.target
`;
}

/** The unit's confinement. */
const confinement = (writable: string): string => `NoNewPrivileges=yes
# NET_ADMIN: links, addresses, routes, nftables. NET_RAW: asking other nodes for an echo where net.ipv4.ping_group_range
# does not let root. SYS_ADMIN: entering pods' namespaces. SYS_PTRACE and DAC_OVERRIDE: namespaces that a runtime names by
# processes, and sockets of an Open vSwitch that runs as a user of its own.
CapabilityBoundingSet=CAP_NET_ADMIN CAP_NET_RAW CAP_SYS_ADMIN CAP_SYS_PTRACE CAP_DAC_OVERRIDE
RestrictAddressFamilies=AF_UNIX AF_NETLINK AF_INET AF_INET6
RestrictNamespaces=net
# What is not among these comes back with EPERM. That happens to SQLite, which would give its log to the owner of the
# database, root, whose it is already.
SystemCallFilter=@system-service
SystemCallFilter=~@chown @keyring @memlock @setuid @resources @privileged
SystemCallErrorNumber=EPERM
SystemCallArchitectures=native
# What the system mounts later, such as pods' namespaces, shows up here all the same.
ProtectSystem=strict
ReadWritePaths=${writable}
ProtectHome=read-only
PrivateTmp=yes
PrivateDevices=yes
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
# Not: MemoryDenyWriteExecute=, for the JavaScript compiler; ProtectKernelTunables= and ProcSubset=, for the switches
# below /proc/sys/net; PrivateNetwork= and PrivateUsers=, for the node's own network.
`;

/** Directories that systemd creates for the unit and keeps writable. */
const ownDirectories = ["/var/lib/pipette", "/run/pipette", "/var/run/pipette"];

/** Other directories that the agent writes to. */
const writableBy = ({ confDir, dataDir, socket }: ServiceDefinition): readonly string[] =>
  [...new Set([confDir, dataDir, dirname(socket)])].filter((directory) => !ownDirectories.includes(directory));

/** A word of a command line of systemd (systemd.service(5), systemd.unit(5)); `%` and `$` are special and escaped. */
function word(text: string): string {
  const escaped = text.replaceAll("%", "%%").replaceAll("$", "$$$$");
  return /^[\w/.:=%$@+-]+$/.test(escaped) ? escaped : `"${escaped.replace(/[\\"]|\p{Cc}/gu, quoted)}"`;
}

/** A line end would end the assignment and begin another one. */
const quoted = (char: string): string =>
  char === "\\" || char === '"' ? `\\${char}` : `\\x${char.charCodeAt(0).toString(16).padStart(2, "0")}`;
