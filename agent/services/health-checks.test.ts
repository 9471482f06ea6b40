import { afterEach, expect, test } from "vitest";
import { eventually } from "../../test/support/eventually.ts";
import { HealthChecks } from "./health-checks.ts";

const lines: string[] = [];
let isHealthy = true;
let checks: HealthChecks;
const made = (): HealthChecks => {
  const lacks = (service: string, message: string) => void lines.push(`${service}: ${message}`);
  checks = new HealthChecks({ node: "n1", isHealthy: () => isHealthy, lacks, retryMs: 10 });
  return checks;
};
afterEach(async () => {
  await checks[Symbol.asyncDispose]();
  isHealthy = true;
});

/** A port that nobody has: the kernel gives it, and has it back. */
function freePort(): number {
  const listener = Bun.listen({ hostname: "::", port: 0, socket: { data: () => undefined } });
  listener.stop(true);
  return listener.port;
}

const one = (port: number, localEndpoints: number) => new Map([["x/web", { port, localEndpoints }]]);

async function asked(port: number, host = "127.0.0.1"): Promise<[status: number, body: unknown]> {
  const answer = await fetch(`http://${host}:${port}/healthz`, { headers: { connection: "close" } });
  expect([answer.headers.get("content-type"), answer.headers.get("x-content-type-options")]).toEqual([
    "application/json",
    "nosniff",
  ]);
  return [answer.status, await answer.json()];
}

test("a load balancer hears whether this node has endpoints that are ready, and whether its services are in force", async () => {
  const port = freePort();
  const checks = made();
  const body = { service: { namespace: "x", name: "web" }, serviceProxyHealthy: true };
  checks.serve(one(port, 2));
  expect(await asked(port)).toEqual([200, { ...body, localEndpoints: 2 }]);
  checks.serve(one(port, 0));
  expect(await asked(port)).toEqual([503, { ...body, localEndpoints: 0 }]);
  checks.serve(one(port, 1));
  isHealthy = false;
  expect(await asked(port)).toEqual([503, { ...body, localEndpoints: 1, serviceProxyHealthy: false }]);
});

test("it is asked at another port when it has another, and at none when it has none", async () => {
  const [first, second] = [freePort(), freePort()];
  const checks = made();
  checks.serve(one(first, 1));
  checks.serve(one(second, 1));
  expect((await asked(second))[0]).toBe(200);
  await expect(asked(first)).rejects.toThrow();
  // Which another has at once.
  checks.serve(new Map([["x/other", { port: second, localEndpoints: 1 }]]));
  expect(checks.problems.size).toBe(0);
  expect((await asked(second))[1]).toMatchObject({ service: { namespace: "x", name: "other" } });
  checks.serve(new Map());
  await expect(asked(second)).rejects.toThrow();
});

test("a port that somebody else has is told once, and had as soon as it is free", async () => {
  const port = freePort();
  const other = Bun.listen({ hostname: "::", port, socket: { data: () => undefined } });
  const checks = made();
  checks.serve(one(port, 1));
  const said = `its health is not told: port ${port} of node "n1" cannot be had (EADDRINUSE)`;
  expect([...checks.problems]).toEqual([["x/web", said]]);
  await Bun.sleep(50);
  expect(lines).toEqual([`x/web: ${said}`]);
  other.stop(true);
  await eventually(() => checks.problems.size === 0, "the port");
  expect((await asked(port))[0]).toBe(200);
});
