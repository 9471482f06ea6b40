/** A CNI executable started the way a runtime starts it: once per verb, variables and stdin, until it has ended. */
export interface PluginProcess {
  readonly executable: string;
  readonly env: Readonly<Record<string, string>>;
  readonly conf: string;
}

export interface Ended {
  readonly ms: number;
  readonly stdout: string;
}

/** @throws where the call failed: a benchmark of failures would measure nothing */
export function runTimed(call: PluginProcess): Ended {
  const started = performance.now();
  const child = Bun.spawnSync({
    cmd: [call.executable],
    env: call.env,
    stdin: new TextEncoder().encode(call.conf),
    stdout: "pipe",
    stderr: "pipe",
  });
  const ms = performance.now() - started;
  const stdout = child.stdout.toString();
  if (child.exitCode !== 0) {
    const verb = call.env["CNI_COMMAND"];
    throw new Error(`Cannot measure ${verb} of "${call.executable}": it answered ${stdout || child.stderr.toString()}`);
  }
  return { ms, stdout };
}

export function verbEnv(verb: string, id: string, netns: string, path: string): Record<string, string> {
  return {
    CNI_COMMAND: verb,
    CNI_CONTAINERID: id,
    CNI_NETNS: netns,
    CNI_IFNAME: "eth0",
    CNI_PATH: path,
    CNI_ARGS: "IgnoreUnknown=1",
    PATH: process.env["PATH"] ?? "/usr/sbin:/usr/bin:/sbin:/bin",
  };
}
