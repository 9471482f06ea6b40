import { beforeEach, expect, test, vi } from "vitest";
import { createLogger } from "../../../shared/log.ts";
import { parseIp } from "../../../shared/net/ip.ts";
import {
  bridge,
  cidr,
  freshNode,
  hostOf,
  network,
  requestFor,
  started,
} from "../../../test/fakes/netlink/bridge-node.ts";
import { present } from "../../../test/fakes/netlink/kernel.ts";
import { Refusal } from "../../../test/fakes/netlink/messages.ts";
import { addRoute, Errno } from "../../protocols/netlink/mod.ts";
import { cleanUpBridges } from "./clean-up.ts";

vi.mock(import("../../protocols/netlink/kernel.ts"), () => import("../../../test/fakes/netlink/kernel.ts") as never);
vi.mock(import("../../platform/run-program.ts"), async (original) => ({
  ...(await original()),
  runProgram: async (_file: string, _args: readonly string[], { input = "" }: { readonly input?: string }) =>
    present.node.nft(input),
}));
vi.mock(import("node:fs"), async (original) => {
  const { hostFiles } = await import("../../../test/fakes/netlink/host-files.ts");
  return hostFiles(await original()) as never;
});

beforeEach(freshNode);
const logger = createLogger("error", () => undefined);
const cleanUp = async (networks: readonly { readonly name: string; readonly bridge: string }[] = [network]) =>
  (await cleanUpBridges(networks, logger)).map(({ step, what, did, problem }) =>
    [step, what, did, ...(problem === undefined ? [] : [problem])].join(" | "),
  );

async function withPod(): Promise<void> {
  await using dataPath = await started();
  await dataPath.attach(requestFor("a", 10));
}

test("takes back all that there is, once", async () => {
  await withPod();
  const { node } = present;
  const socket = node.socketIn(node.own);
  const { index } = node.own.add({ name: "eth0" });
  socket.run(addRoute({ dst: cidr("10.1.3.0/24"), index, gateway: parseIp("192.168.1.3")!, protocol: 0x70 }));
  socket.run(addRoute({ dst: cidr("10.1.4.0/24"), index }));
  const steps = (did: string) => [
    `routes | routes to other nodes' pods | ${did}`,
    `pods | interfaces of network "pods" | ${did}`,
    `bridge | "br0" | ${did}`,
    `packet rules | table "inet pipette-br0" | ${did}`,
    `packet rules | table "bridge pipette-br0" | ${did}`,
  ];
  expect(await cleanUp()).toEqual(steps("undone"));
  expect([...node.own.links.values()].map(({ name }) => name)).toEqual(["lo", "eth0"]);
  expect(node.own.routes).toHaveLength(1);
  expect(node.filter.tables.size).toBe(0);
  expect(node.pods.get("/run/netns/a")?.named("eth0")).toBeUndefined();
  expect(await cleanUp()).toEqual(steps("was gone"));
});

test("leaves the pods of other networks, and with them nothing that is theirs", async () => {
  await withPod();
  expect(await cleanUp([{ name: "other", bridge: "br1" }])).toContain(
    'pods | interfaces of network "other" | was gone',
  );
  expect(hostOf("a").master).toBe(bridge().index);
});

test.each([
  ["a port", () => present.node.own.add({ name: "tap0", master: bridge().index }), 'it has the port "tap0"'],
  ["an address", () => add([192, 0, 2, 9], 24), "it has the address 192.0.2.9/24"],
  ["an address of IPv6", () => add([0x20, 1, ...new Uint8Array(13), 9], 64), "it has the address 2001::9/64"],
] as const)("leaves a bridge with %s of somebody else's, and does the rest", async (_name, change, says) => {
  await withPod();
  change();
  const changes = await cleanUp();
  expect(changes[2]).toMatch(/^bridge \| "br0" \| failed \| Cannot remove the bridge "br0": /);
  expect(changes[2]).toContain(`${says}, which is not ours; `);
  expect(changes.slice(3).every((each) => each.endsWith("undone"))).toBe(true);
  expect(bridge().index).toBeGreaterThan(0);
});

function add(ip: readonly number[], prefix: number): void {
  const family = ip.length === 4 ? 2 : 10;
  present.node.own.addresses.push({ index: bridge().index, family, prefix, ip: Uint8Array.from(ip) });
}

test("takes a bridge away that has gateways of earlier subnets and the kernel's own addresses alone", async () => {
  await withPod();
  add([10, 88, 3, 1], 24);
  add([0xfe, 0x80, ...new Uint8Array(13), 9], 64);
  expect((await cleanUp())[2]).toBe('bridge | "br0" | undone');
});

test.each([
  ["veth", "veth"],
  [undefined, "hardware"],
])("leaves an interface that is no bridge: %s", async (kind, says) => {
  present.node.own.add({ name: "br0", ...(kind === undefined ? {} : { kind }) });
  expect((await cleanUp())[2]).toContain(`it is of kind "${says}"`);
  expect(bridge().name).toBe("br0");
});

test("says what the kernel refuses, and counts what is gone just then as gone", async () => {
  await withPod();
  let errno: number = Errno.EPERM;
  present.node.before = (action) => {
    if (action === 'delete the interface "br0"') throw new Refusal(errno);
  };
  expect((await cleanUp())[2]).toMatch(/failed \| .*EPERM/);
  errno = Errno.ENODEV;
  expect((await cleanUp())[2]).toBe('bridge | "br0" | was gone');
});
