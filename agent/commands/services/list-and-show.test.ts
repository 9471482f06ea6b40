import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { createLogger } from "../../../shared/log.ts";
import { parseIp } from "../../../shared/net/ip.ts";
import { CallTracker } from "../../../shared/server/call-tracker.ts";
import { RpcServer } from "../../../shared/server/rpc-server.ts";
import { runAt, type TerminalRun } from "../../../test/fakes/terminal-run.ts";
import type { ServicePort } from "../../datapath/services.ts";
import { balancingRpcs } from "../../server/balancing-service.ts";
import type { Traced } from "../../services/mod.ts";
import { servicesCommands } from "./services-commands.ts";

const stack: (() => unknown)[] = [];
afterEach(async () => {
  for (const undo of stack.splice(0).reverse()) await undo();
});

const at = (address: string, isLocal: boolean) => ({ ip: parseIp(address)!, port: 8080, weight: 100, isLocal });
const local = [at("10.0.0.1", true)];
const all = [...local, at("10.0.1.1", false)];
const plain: ServicePort = {
  ...{ key: "x/dns:udp", protocol: "udp", port: 53, clusterIp: parseIp("10.96.0.2")!, externalIps: [], ingressIps: [] },
  ...{ internal: [], external: [], cluster: [], keepsClient: false, preservesDestination: false },
};
const web: ServicePort = {
  ...{ ...plain, key: "x/web:http", protocol: "tcp", port: 80, nodePort: 30_080, healthCheckNodePort: 32_000 },
  ...{ ingressIps: [parseIp("192.0.2.9")!], sourceRanges: [], affinitySeconds: 60, keepsClient: true },
  ...{ internal: all, external: local, cluster: all },
};

let traced: Traced;

/** An agent that balances these. */
async function served(services: readonly ServicePort[] | undefined, refused = ""): Promise<string> {
  const directory = mkdtempSync(join(tmpdir(), "pt-"));
  stack.push(() => rmSync(directory, { recursive: true }));
  const wanted = new Map((services ?? []).map((port) => [port.key, port]));
  const refusalOf = (key: string) => (key === "x/web:http" && refused !== "" ? refused : undefined);
  const trace = () => traced;
  const rpcs = balancingRpcs(
    () => (services === undefined ? undefined : { wanted, refusalOf, trace }),
    () => [],
  );
  const logger = createLogger("error", () => undefined);
  const server = await RpcServer.listen(join(directory, "s"), [rpcs], new CallTracker(), logger);
  stack.push(() => server.close(0));
  return join(directory, "s");
}

const run = (socket: string, ...args: string[]): Promise<TerminalRun> =>
  runAt("pipette services", servicesCommands, [...args, "--socket", socket]);

test("list shows each port, who answers, and what is refused", async () => {
  expect(await run(await served([web, plain]), "list")).toEqual({
    status: 0,
    stdout: `SERVICE     CLUSTER-IP  PORT    OUTSIDE               ENDPOINTS  HERE  FROM OUTSIDE
x/dns:udp   10.96.0.2   53/udp  -                     0          0     -
x/web:http  10.96.0.2   80/tcp  node:30080,192.0.2.9  2          1     1
`,
    stderr: "",
  });
  const refused = await run(await served([web], "too many"), "list");
  expect([refused.status, refused.stdout.split("\n")[2]]).toEqual([1, "x/web:http is refused: too many"]);
  expect(await run(await served([]), "list")).toMatchObject({ status: 0, stdout: "No services\n" });
  const json = JSON.parse((await run(await served([web]), "list", "--json")).stdout);
  expect(json.services[0]).toMatchObject({ key: "x/web:http", endpoints: [{ address: "10.0.0.1:8080" }, {}] });
});

test("show tells of one service where it is reached, and who answers there", async () => {
  const { stdout, status } = await run(await served([web, plain]), "show", "x/web");
  expect(status).toBe(0);
  expect(stdout).toBe(`x/web:http: 10.96.0.2 port 80, tcp
outside: node:30080,192.0.2.9, clients keep their addresses
to 192.0.2.9 only from: nobody
clients keep their endpoint for 60 s
load balancers ask for its health at port 32000
ENDPOINT       WHERE      AT THE CLUSTER IP  TO THOSE OUTSIDE  TO PODS AND NODE ELSEWHERE
10.0.0.1:8080  this node  yes                yes               yes
10.0.1.1:8080  elsewhere  yes                no                yes
`);
  expect((await run(await served([plain]), "show", "x/dns:udp")).stdout).toBe(
    "x/dns:udp: 10.96.0.2 port 53, udp\nnobody answers\n",
  );
  const none = await run(await served([web]), "show", "x/we");
  expect([none.status, none.stderr]).toEqual([
    3,
    'Cannot show the service: this node balances no service "x/we", wanted one of "pipette services list"\n',
  ]);
});

test("trace shows where a packet goes, why, and to whom how often", async () => {
  const socket = await served([web]);
  traced = { outcome: "balanced", key: "x/web:http", reasons: ["It is", "So it is"], endpoints: all };
  expect(await run(socket, "trace", "10.96.0.2:80", "--from", "host")).toEqual({
    status: 0,
    stdout: `x/web:http: balanced
- It is
- So it is
ENDPOINT       WHERE      SHARE
10.0.0.1:8080  this node  50 %
10.0.1.1:8080  elsewhere  50 %
`,
    stderr: "",
  });
  const json = JSON.parse((await run(socket, "trace", "[fd00::1]:80", "--json")).stdout);
  expect(json.trace).toMatchObject({ outcome: "balanced", endpoints: [{ percent: 50 }, {}] });
  traced = { outcome: "dropped", key: "x/web:http", reasons: [], endpoints: [] };
  expect(await run(socket, "trace", "10.96.0.2:80")).toMatchObject({ status: 1, stdout: "x/web:http: dropped\n" });
  traced = { outcome: "left alone", reasons: ["No service has it"], endpoints: [] };
  expect(await run(socket, "trace", "10.0.0.1:80")).toMatchObject({
    status: 3,
    stdout: "left alone\n- No service has it\n",
  });
  for (const wrong of ["10.96.0.2", "fd00::1:80", "[10.96.0.2]:80", "10.96.0.2:65536", "web:80"])
    expect((await run(socket, "trace", wrong)).status, wrong).toBe(2);
  const nobody = await run(socket, "trace", "10.96.0.2:80", "--from", "x/nobody");
  expect([nobody.status, nobody.stderr]).toEqual([1, expect.stringContaining('this node has no pod "x/nobody"')]);
});

test("an agent that has none, and one that is away, are said to be so", async () => {
  const none = await run(await served(undefined), "list");
  expect([none.status, none.stderr]).toEqual([1, expect.stringContaining("the agent balances no services")]);
  const away = await run("/nowhere/s", "show", "x/web");
  expect([away.status, away.stderr]).toEqual([
    1,
    expect.stringMatching(/^Cannot show the service: .*"\/nowhere\/s"\n$/),
  ]);
});
