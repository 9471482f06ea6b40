import { execa } from "execa";
import { SystemdNode } from "../systemd/systemd-node.ts";

/**
 * A machine that systemd runs, on which dpkg can install: with a database of its own that knows only what our package
 * depends on, and what it writes to below /usr gone with the machine.
 */
export async function startDebNode(directory: string): Promise<SystemdNode> {
  const node = await SystemdNode.start(directory);
  try {
    for (const path of ["bin", "share"]) {
      await node.run(`mkdir -p /run/over/${path}/upper /run/over/${path}/work`);
      const layers = `lowerdir=/usr/${path},upperdir=/run/over/${path}/upper,workdir=/run/over/${path}/work`;
      await node.run(`mount -t overlay -o ${layers} overlay /usr/${path}`);
    }
    await node.run("mkdir -p /var/lib/dpkg/info /var/lib/dpkg/updates /var/lib/dpkg/triggers");
    const { stdout } = await execa("dpkg-query", ["--status", "libc6"]);
    await node.run("tee /var/lib/dpkg/status", { input: `${stdout}\n` });
    const { stdout: files } = await execa("dpkg-query", ["--listfiles", "libc6"]);
    await node.run("tee /var/lib/dpkg/info/libc6:amd64.list", { input: `${files}\n` });
    // There is no journal.
    await node.run(`mkdir -p /etc/systemd/system/${unit}.d`);
    await node.run(`tee /etc/systemd/system/${unit}.d/log.conf`, {
      input: "[Service]\nStandardError=append:/run/log\n",
    });
    return node;
  } catch (caught) {
    await node[Symbol.asyncDispose]();
    throw caught;
  }
}

export const unit = "pipette-agent.service";

/** What systemd says of the agent, also where that is that it is not there. */
export const unitIs = (node: SystemdNode, question: "is-active" | "is-enabled"): Promise<string> =>
  node.run(`systemctl ${question} ${unit}`).catch((caught: { stdout?: string }) => caught.stdout || "unknown");
