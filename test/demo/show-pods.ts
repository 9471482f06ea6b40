import { readdirSync } from "node:fs";
import { execa } from "execa";
import { AgentHome } from "../support/agent-process.ts";
import { type CniCall, callPlugin } from "../support/cni-call.ts";
import type { Screen } from "./screen.ts";

const network = "pods";
const gateway = "10.88.0.1";

interface Pod {
  readonly name: string;
  readonly containerId: string;
  readonly netns: string;
}

/** The whole show. Whatever was started is stopped and whatever was made is removed, also when a step fails. */
export async function showPods(executables: string, screen: Screen): Promise<void> {
  const started = performance.now();
  await execa("ip", ["link", "set", "lo", "up"]);
  const home = new AgentHome(
    { networks: [{ name: network, subnets: ["10.88.0.0/24", "fd88::/64"], bridge: "pipette0" }] },
    executables,
  );
  await using cleanup = new AsyncDisposableStack();
  cleanup.use(home);

  screen.title("A node of its own");
  const agent = await screen.step("start the agent", async () => ({
    value: await home.start(),
    note: `socket ${home.socket}`,
  }));
  const conf = await screen.step("read the configuration that it wrote", async () => {
    const list = JSON.parse(await Bun.file(home.conflist).text());
    return { value: { ...list.plugins[0], name: list.name, cniVersion: "1.1.0" }, note: home.conflist };
  });
  const pods = await screen.step("make two network namespaces", async () => ({
    value: [await makePod("web", "a"), await makePod("db", "b")] as const,
  }));
  for (const pod of pods) cleanup.defer(() => removeNamespace(pod));

  /** One verb as the runtime calls it; the plugin's own time stands beside the step. */
  const verb = (name: string, command: string, pod: Pod | undefined, extra: object = {}, note = ""): Promise<string> =>
    screen.step(name, async () => {
      const ended = await callPlugin(callOf(executables, command, pod, { ...conf, ...extra }));
      return { value: ended.stdout, ms: ended.ms, note };
    });

  screen.title("What a runtime does");
  await verb("STATUS", "STATUS", undefined, {}, "ready for pods");
  const results: string[] = [];
  for (const pod of pods) {
    const text = await verb(`ADD ${pod.name}`, "ADD", pod);
    results.push(text);
  }
  const [web] = pods;
  screen.block(JSON.stringify(JSON.parse(results[0] ?? ""), null, 2));
  const address = (i: number, family: 0 | 1): string => JSON.parse(results[i] ?? "").ips[family].address.split("/")[0];
  await ping(screen, web, "db", address(1, 0));
  await ping(screen, web, "db, IPv6", address(1, 1));
  await ping(screen, web, "the gateway", gateway);
  await verb("CHECK web", "CHECK", web, { prevResult: JSON.parse(results[0] ?? "") }, "stands as its ADD said");
  await screen.step("ADD web again", async () => {
    const ended = await callPlugin(callOf(executables, "ADD", web, conf));
    if (ended.stdout !== results[0]) throw new Error(`it answered ${ended.stdout}, wanted what the first ADD answered`);
    return { value: undefined, ms: ended.ms, note: "the same answer, byte for byte" };
  });
  await screen.step("the leases", async () => ({ value: undefined, note: "pipette ipam list" }));
  screen.block(await leases(executables, home.dataDir));

  screen.title("And away again");
  await verb("DEL web", "DEL", web, { prevResult: JSON.parse(results[0] ?? "") });
  await verb("DEL web, once more", "DEL", web, {}, "is not there: success");
  await verb("GC", "GC", undefined, { "cni.dev/valid-attachments": [] }, "db is on nobody's list: it goes");
  await screen.step("nothing is left", async () => {
    await removeNamespaces(pods);
    await nothingLeft(executables, home.dataDir);
    return { value: undefined, note: "no interface, lease or namespace" };
  });
  await screen.step("stop the agent", async () => {
    const status = await agent.end("SIGTERM");
    if (status !== 0) throw new Error(`it ended with status ${status}, wanted 0: ${agent.stderr}`);
    return { value: undefined };
  });
  console.log(`\nAll of it took ${((performance.now() - started) / 1000).toFixed(1)} s.`);
}

const callOf = (executables: string, command: string, pod: Pod | undefined, conf: object): CniCall => ({
  executable: `${executables}/pipette`,
  env: {
    CNI_COMMAND: command,
    CNI_PATH: executables,
    ...(pod === undefined
      ? {}
      : {
          CNI_CONTAINERID: pod.containerId,
          CNI_NETNS: pod.netns,
          CNI_IFNAME: "eth0",
          CNI_ARGS: `IgnoreUnknown=1;K8S_POD_NAMESPACE=demo;K8S_POD_NAME=${pod.name};K8S_POD_UID=uid-${pod.name}`,
        }),
  },
  conf,
});

async function makePod(name: string, digit: string): Promise<Pod> {
  await execa("ip", ["netns", "add", name]);
  return { name, containerId: digit.repeat(64), netns: `/run/netns/${name}` };
}

async function removeNamespace(pod: Pod): Promise<void> {
  if (readdirSync("/run/netns").includes(pod.name)) await execa("ip", ["netns", "del", pod.name]);
}

async function removeNamespaces(pods: readonly Pod[]): Promise<void> {
  for (const pod of pods) await removeNamespace(pod);
}

const ping = (screen: Screen, from: Pod, to: string, address: string): Promise<void> =>
  screen.step(`ping from ${from.name} to ${to}`, async () => {
    const { stdout } = await execa("nsenter", [
      `--net=${from.netns}`,
      "ping",
      "-n",
      "-c",
      "2",
      "-i",
      "0.2",
      "-W",
      "2",
      address,
    ]);
    const trips = [...stdout.matchAll(/time=([\d.]+)/g)].map((match) => Number(match[1]));
    return { value: undefined, ms: Math.min(...trips), note: `${address}, ${trips.length} of 2 came back` };
  });

async function leases(executables: string, dataDir: string): Promise<string> {
  return (await execa(`${executables}/pipette`, ["ipam", "list", "--data-dir", dataDir])).stdout;
}

/** The kernel may take a moment to forget an interface that was marked for deletion. */
async function nothingLeft(executables: string, dataDir: string): Promise<void> {
  const until = performance.now() + 3_000;
  for (;;) {
    const links: { ifname: string; linkinfo?: { info_kind?: string } }[] = JSON.parse(
      (await execa("ip", ["-d", "-j", "link"])).stdout,
    );
    const veths = links.filter((link) => link.linkinfo?.info_kind === "veth").map((link) => link.ifname);
    const list = JSON.parse(
      (await execa(`${executables}/pipette`, ["ipam", "list", "--json", "--data-dir", dataDir])).stdout,
    );
    const held = (list as { state: string; address: string }[]).filter((lease) => lease.state !== "cooling");
    const namespaces = readdirSync("/run/netns");
    const left = [...veths, ...held.map((lease) => lease.address), ...namespaces];
    if (left.length === 0) return;
    if (performance.now() > until) throw new Error(`${left.join(", ")} stayed behind, wanted nothing`);
    await Bun.sleep(50);
  }
}
