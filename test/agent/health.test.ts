import { createServer } from "node:net";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { HealthServer } from "../../agent/health-server.ts";
import { AgentHome, bridgeName, eventually } from "../support/agent-process.ts";
import { startCommand } from "../support/cni-call.ts";
import { loopbackGet } from "../support/loopback-get.ts";
import { NetworkSandbox } from "../support/network-sandbox.ts";
import { describeWith } from "../support/requires.ts";

const port = 10_390;
const probing = ["--health-port", String(port)];

/** What each probe gets. */
const probes = async () => {
  const [startup, live, ready] = await Promise.all(
    ["/startupz", "/livez", "/readyz"].map((path) => loopbackGet(port, path)),
  );
  return [startup?.status, live?.status, ready?.status];
};

describeWith("an agent whom a kubelet asks for its health", ["root", "nft"], () => {
  let sandbox: NetworkSandbox;
  let home: AgentHome;

  beforeAll(async () => {
    sandbox = await NetworkSandbox.enter("pt-dh-");
  });
  afterEach(async () => {
    await home?.[Symbol.asyncDispose]();
    await sandbox.node(`ip link del ${bridgeName}`).catch(() => undefined);
  });
  afterAll(async () => {
    await sandbox?.[Symbol.asyncDispose]();
  });

  test("is started and ready when it serves, and not ready while pods have no network", async () => {
    home = new AgentHome();
    const agent = await home.start({}, probing);
    expect(await probes()).toEqual([200, 200, 200]);
    // Again and again: the agent puts right at once what it hears of.
    const script = "for i in $(seq 600); do sysctl -q -w net.ipv4.ip_forward=0; sleep 0.05; done";
    const saboteur = startCommand(
      ["setpriv", "--pdeathsig", "KILL", "sh", "-c", script],
      { PATH: "/usr/sbin:/usr/bin:/sbin:/bin" },
      "",
    );
    try {
      await expect.poll(probes).toEqual([200, 200, 503]);
      const told = async (): Promise<string> => (await loopbackGet(port, "/readyz")).text;
      await expect.poll(told).toMatch(/^(?!.*forwarding).*\d+ problems?, which "pipette status" tells\n$/s);
    } finally {
      process.kill(saboteur.pid, "SIGKILL");
      await saboteur.ended;
    }
    await eventually(async () => (await loopbackGet(port, "/readyz")).status === 200, "the agent to put it right");
    expect((await loopbackGet(port, "/")).status).toBe(404);
    expect(await agent.end()).toBe(0);
    expect(await probes()).toEqual([0, 0, 0]);
  });

  test("is ready with a pool that is full: it would hold up every update", async () => {
    const networks = [{ name: "pods", subnets: ["10.78.0.0/30"], bridge: bridgeName, exclude: ["10.78.0.2"] }];
    home = new AgentHome({ networks });
    await home.start({}, probing);
    expect((await home.status()).problems).toEqual([expect.objectContaining({ advisory: true })]);
    expect(await probes()).toEqual([200, 200, 200]);
  });

  test("is started and not ready while it waits for others: a new start would help nobody", async () => {
    home = new AgentHome({
      networks: [{ name: "pods", bridge: bridgeName }],
      nodes: { name: "node-1", registry: { type: "static", file: "/nowhere/nodes.yaml" } },
    });
    const agent = home.spawn({}, probing);
    await agent.logged((line) => String(line["message"]).startsWith("serving without a data path"));
    await eventually(async () => (await loopbackGet(port, "/startupz")).status === 200, "the start");
    expect(await probes()).toEqual([200, 200, 503]);
  });

  test("does not start where somebody else would answer in its place", async () => {
    const other = createServer((socket) => socket.end()).listen(port, "127.0.0.1");
    try {
      home = new AgentHome();
      const agent = home.spawn({}, probing);
      expect(await agent.ended()).toBe(1);
      expect(agent.stderr).toContain(`port ${port} of 127.0.0.1 cannot be had (EADDRINUSE)`);
    } finally {
      other.close();
    }
  });

  test("does not answer where other nodes could ask", async () => {
    await sandbox.node("ip addr replace 192.0.2.77/32 dev lo");
    home = new AgentHome();
    await home.start({}, probing);
    expect(await sandbox.node("ss -Hltn")).toContain(`127.0.0.1:${port} `);
    expect(await sandbox.node("ss -Hltn")).not.toMatch(
      new RegExp(`(0\\.0\\.0\\.0|\\*|\\[::\\]|192\\.0\\.2\\.77):${port} `),
    );
  });

  test("lives, and is neither started nor ready, before there is an agent", async () => {
    await using server = new HealthServer();
    server.listen(port);
    expect(await probes()).toEqual([503, 200, 503]);
    let looks = 0;
    server.started({
      outages: async () => {
        looks++;
        throw new Error("nobody knows");
      },
    });
    expect(await probes()).toEqual([200, 200, 503]);
    for (let i = 0; i < 5; i++) await loopbackGet(port, "/readyz");
    // Whoever asks more often makes no work.
    expect(looks).toBe(1);
  });
});
