import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { connect as connectTls } from "node:tls";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { AgentHome, bridgeName, eventually } from "../support/agent-process.ts";
import { loopbackGet } from "../support/loopback-get.ts";
import { NetworkSandbox } from "../support/network-sandbox.ts";
import { promtool, sumOf } from "../support/promtool.ts";
import { describeWith } from "../support/requires.ts";

const port = 10_352;
const served = async (agent: { logged(wanted: (line: object) => boolean): Promise<unknown> }): Promise<unknown> =>
  agent.logged((line) => "message" in line && line.message === "metrics are served");

describeWith("an agent whom Prometheus asks", ["root", "nft", "promtool"], () => {
  let sandbox: NetworkSandbox;
  let home: AgentHome;

  beforeAll(async () => {
    sandbox = await NetworkSandbox.enter("pt-dm-");
  });
  afterEach(async () => {
    await home?.[Symbol.asyncDispose]();
    await sandbox.node(`ip link del ${bridgeName}`).catch(() => undefined);
  });
  afterAll(async () => {
    await sandbox?.[Symbol.asyncDispose]();
  });

  test("tells of calls, their parts and addresses, by names that Prometheus' own tool takes", async () => {
    // Five addresses and the gateway.
    const networks = [{ name: "pods", subnets: ["10.78.0.0/29"], bridge: bridgeName, exclude: ["10.78.0.6"] }];
    home = new AgentHome({ networks, metrics: { listen: `127.0.0.1:${port}`, plain: true } });
    const agent = await home.start();
    await served(agent);
    const scrape = async (): Promise<string> => {
      // Another text than the one of a moment ago.
      await Bun.sleep(1_100);
      const { status, text } = await loopbackGet(port, "/metrics");
      expect(status).toBe(200);
      return text.slice(text.indexOf("\r\n\r\n") + 4);
    };
    for (const name of ["a", "b", "c", "d"]) {
      const netns = await sandbox.addPod(name);
      expect((await home.cmd("cmdAdd", name, { netns })).error).toBeUndefined();
    }
    expect((await home.cmd("cmdAdd", "e", { netns: await sandbox.addPod("e") })).error?.code).toBe(101);
    await home.cmd("cmdDel", "a");
    const text = await scrape();
    const { status, said } = await promtool(["check", "metrics"], text);
    expect({ status, said }).toEqual({ status: 0, said: "" });
    const requests = (labels: string): number => sumOf(text, "pipette_cni_requests_total", labels);
    expect([requests('verb="ADD",code="0"'), requests('verb="ADD",code="101"'), requests('verb="DEL"')]).toEqual([
      4, 1, 1,
    ]);
    const count = (name: string, labels = ""): number => sumOf(text, `${name}_count`, labels);
    expect(count("pipette_cni_request_duration_seconds", 'verb="ADD"')).toBe(5);
    expect(count("pipette_pod_network_ready_seconds")).toBe(4);
    const phases = ["queue", "ipam", "datapath"].map((phase) =>
      count("pipette_cni_phase_duration_seconds", `verb="ADD",phase="${phase}"`),
    );
    expect(phases).toEqual([5, 4, 4]);
    expect(sumOf(text, "pipette_ipam_allocation_failures_total", 'reason="exhausted"')).toBe(1);
    expect(sumOf(text, "pipette_datapath_operations_total", 'op="attach",result="ok"')).toBe(4);
    const addresses = Object.fromEntries(
      ["allocated", "releasing", "cooling", "free", "excluded"].map((state) => [
        state,
        sumOf(text, "pipette_ipam_addresses", `network="pods",state="${state}"`),
      ]),
    );
    expect(addresses).toEqual({ allocated: 3, releasing: 0, cooling: 1, free: 0, excluded: 2 });
    expect([sumOf(text, "pipette_agent_ready"), sumOf(text, "pipette_node_problems")]).toEqual([1, 0]);
    // The parts of an ADD are no longer than the whole.
    const whole = sumOf(text, "pipette_cni_request_duration_seconds_sum", 'verb="ADD"');
    expect(sumOf(text, "pipette_cni_phase_duration_seconds_sum", 'verb="ADD"')).toBeLessThanOrEqual(whole);
    expect((await loopbackGet(port, "/")).status).toBe(404);
    expect(text).not.toMatch(/10\.78\.|netns|"a"/);
    expect(await agent.end()).toBe(0);
  });

  test("shows them over HTTPS to those alone whom the API server lets", async () => {
    const reviews: unknown[] = [];
    using apiServer = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      fetch: async (request) => {
        const { spec } = (await request.json()) as {
          spec: { token?: string; user?: string; nonResourceAttributes?: object };
        };
        reviews.push(spec.nonResourceAttributes);
        const { token, user } = spec;
        const status =
          token === undefined
            ? { allowed: user === "prometheus" }
            : { authenticated: token !== "stranger", user: { username: token } };
        return Response.json({ status }, { status: 201 });
      },
    });
    home = new AgentHome();
    const token = join(home.directory, "token");
    writeFileSync(token, "agent", { mode: 0o600 });
    const access = { server: `http://127.0.0.1:${apiServer.port}`, token, ca: token };
    home.change({ metrics: { listen: `127.0.0.1:${port}`, ...access } });
    await served(await home.start());
    expect((await tlsGet()).status).toBe(401);
    expect((await tlsGet("stranger")).status).toBe(401);
    expect((await tlsGet("pod")).status).toBe(403);
    const answer = await tlsGet("prometheus");
    expect(answer.status).toBe(200);
    expect(answer.text).toContain("pipette_build_info{");
    expect(reviews).toContainEqual({ verb: "get", path: "/metrics" });
    // Not by plain HTTP.
    expect((await loopbackGet(port, "/metrics")).status).toBe(0);
    void apiServer.stop(true);
    expect((await tlsGet("another")).status).toBe(503);
  });

  test("gives pods a network also where somebody else has its port, and opens none that it was not asked for", async () => {
    home = new AgentHome({ metrics: { listen: `127.0.0.1:${port}`, plain: true } });
    const other = Bun.listen({ hostname: "127.0.0.1", port, socket: { data: () => undefined } });
    const agent = await home.start();
    await agent.logged((line) => line["message"] === "metrics are not served yet");
    expect((await home.cmd("cmdAdd", "a", { netns: await sandbox.addPod("f") })).error).toBeUndefined();
    other.stop(true);
    await eventually(async () => (await loopbackGet(port, "/metrics")).status === 200, "the port", 60_000);
    await agent.end();
    home.change({ metrics: undefined });
    await home.start();
    expect(await sandbox.node("ss -Hltn")).toBe("");
  });
});

/** From this thread's network namespace, in which `fetch` is not. */
function tlsGet(token?: string): Promise<{ readonly status: number; readonly text: string }> {
  const { promise, resolve } = Promise.withResolvers<{ status: number; text: string }>();
  let text = "";
  const socket = connectTls({ host: "127.0.0.1", port, rejectUnauthorized: false }, () => {
    const authorization = token === undefined ? "" : `Authorization: Bearer ${token}\r\n`;
    socket.write(`GET /metrics HTTP/1.1\r\nHost: node\r\n${authorization}Connection: close\r\n\r\n`);
  });
  socket.on("data", (chunk) => {
    text += String(chunk);
  });
  socket.on("error", () => undefined);
  socket.on("close", () => resolve({ status: Number(/^HTTP\/1\.1 (\d+)/.exec(text)?.[1] ?? 0), text }));
  return promise;
}
