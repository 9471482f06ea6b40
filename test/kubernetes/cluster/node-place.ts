import { PrivateNode } from "../../support/private-node.ts";

/** What the kubelet would write, with the values that it wants: they are the machine's, and not to be changed. */
const sysctls = {
  "vm/overcommit_memory": 1,
  "vm/panic_on_oom": 0,
  "kernel/panic": 10,
  "kernel/panic_on_oops": 1,
  "kernel/keys/root_maxkeys": 1_000_000,
  "kernel/keys/root_maxbytes": 25_000_000,
} as const;

/** `/etc` and `/opt` are the machine's with changes that the node keeps to itself. */
const script = `set -e
mount --make-rshared /
mount -t tmpfs log /var/log
for place in /etc /opt; do
  own=/run/own$place
  mkdir -p $own/upper $own/work
  mount -t overlay -o lowerdir=$place,upperdir=$own/upper,workdir=$own/work overlay $place
done
rm -rf /etc/cni /opt/cni /etc/pipette
mkdir -p /etc/cni/net.d /opt/cni/bin /etc/pipette
mkdir /run/sysctl
${Object.entries(sysctls)
  .map(([path, value], i) => `echo ${value} > /run/sysctl/${i}; mount --bind /run/sysctl/${i} /proc/sys/${path}`)
  .join("\n")}
`;

/** Waits for the end of its stdin, that is of whoever started it, and takes away what is left of a node without one. */
const removal = `trap "" INT TERM HUP; read -r _; sleep 2
for group in /sys/fs/cgroup/*$1; do find "$group" -depth -type d -exec rmdir {} \\; ; done 2>/dev/null
rm -rf "$0"`;

/** A machine for a kubelet: a `PrivateNode` whose usual places a program may write to, each where it is by default. */
export async function startNodePlace(): Promise<PrivateNode> {
  const place = await PrivateNode.start({ ownGroups: true });
  const remover = ["sh", "-c", removal, place.directory, place.cgroup];
  Bun.spawn(remover, { stdin: "pipe", stdout: "ignore", stderr: "ignore" }).unref();
  try {
    await place.runWords(["sh", "-c", script]);
    return place;
  } catch (caught) {
    await place[Symbol.asyncDispose]();
    throw caught;
  }
}
