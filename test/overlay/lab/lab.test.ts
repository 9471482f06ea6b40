import { existsSync, readdirSync, readFileSync } from "node:fs";
import { basename } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { eventually } from "../../support/agent-process.ts";
import { describeWith } from "../../support/requires.ts";
import { external } from "./addresses.ts";
import { Lab } from "./lab.ts";
import { answers, type Place, unansweredPings } from "./reach.ts";
import { failedConnections, seenBy, TcpServer } from "./tcp.ts";

/** The kit itself, without any agent: a test on it means something only if the ground holds. */
describeWith("the ground of the many nodes", ["root", "openvswitch", "nft"], () => {
  let lab: Lab;
  let nodes: Place[];

  beforeAll(async () => {
    lab = await Lab.ground({ nodes: ["a", "a", "b"] });
    nodes = lab.nodes.map(({ name, namespace, addresses }) => ({ name, namespace, addresses }));
  });
  afterAll(() => lab?.[Symbol.asyncDispose]());

  test("nodes reach each other and beyond, on one link and across the router", async () => {
    const beyond = { name: "external", namespace: lab.underlay.namespace, addresses: [...external] };
    expect(await unansweredPings(nodes, [...nodes, beyond])).toEqual([]);
    expect(await failedConnections(nodes)).toEqual([]);
  });

  test("the server says whom it saw", async () => {
    using server = new TcpServer(lab.underlay.namespace);
    const node = lab.node(1);
    expect([await seenBy(node.namespace, external[0]), await seenBy(node.namespace, external[1])]).toEqual(
      node.addresses,
    );
    server[Symbol.dispose]();
    expect(await seenBy(node.namespace, external[0])).toBeUndefined();
  });

  test("what nobody answers, and what is pulled out, shows", async () => {
    const node = lab.node(1);
    expect(await answers(node.namespace, "172.30.0.77", { seconds: 1 })).toBe(false);
    await lab.underlay.plug(2, "down");
    expect(await answers(node.namespace, lab.node(2).addresses[0], { seconds: 1 })).toBe(false);
    await lab.underlay.plug(2, "up");
    // The kernel notices a carrier in its own time, up to a second later and more on a busy machine.
    const isBack = () => answers(node.namespace, lab.node(2).addresses[0]);
    await expect.poll(isBack, { timeout: 30_000 }).toBe(true);
  });

  test("a lab that is disposed leaves nothing behind", async () => {
    const before = readdirSync("/proc/self/fd").length;
    const own = await Lab.ground({ nodes: ["a"] });
    expect(ofLab(own.directory)).toEqual({ directory: true, processes: ["ovs-vswitchd", "ovsdb-server", "sh"] });
    await own[Symbol.asyncDispose]();
    expect(ofLab(own.directory)).toEqual({ directory: false, processes: [] });
    // Those of the tests before may be closed meanwhile.
    await expect.poll(() => readdirSync("/proc/self/fd").length).toBeLessThanOrEqual(before);
  });

  test("nor does one whose process is killed", async () => {
    const program = new URL("held-lab.ts", import.meta.url).pathname;
    const held = Bun.spawn([process.execPath, program], { stdin: "ignore", stdout: "pipe", stderr: "inherit" });
    const { value } = await held.stdout.getReader().read();
    const directory = new TextDecoder().decode(value).trim();
    expect(ofLab(directory)).toEqual({ directory: true, processes: ["ovs-vswitchd", "ovsdb-server", "sh"] });
    held.kill("SIGKILL");
    await held.exited;
    await eventually(() => {
      const { directory: stands, processes } = ofLab(directory);
      return !stands && processes.length === 0;
    }, "the end of everything that the killed process had started");
  });
});

/** What there is of a lab: its directory, and the processes that have it on their command line. */
function ofLab(directory: string): { readonly directory: boolean; readonly processes: readonly string[] } {
  const processes = readdirSync("/proc").flatMap((pid) => {
    try {
      const words = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
      return words.some((word) => word.includes(directory)) ? [basename(words[0] ?? "")] : [];
    } catch {
      return []; // Not a process, or one that has ended since.
    }
  });
  return { directory: existsSync(directory), processes: processes.sort() };
}
