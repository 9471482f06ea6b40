import { beforeEach, describe, expect, test, vi } from "vitest";
import { type Ip, parseIp } from "../../../shared/net/ip.ts";
import {
  bridge,
  freshNode,
  hostOf,
  lines,
  podOf,
  problems,
  requestFor,
  started,
} from "../../../test/fakes/netlink/bridge-node.ts";
import { NodeInMemory, present } from "../../../test/fakes/netlink/kernel.ts";
import { Refusal } from "../../../test/fakes/netlink/messages.ts";
import { Errno } from "../../protocols/netlink/mod.ts";
import type { BridgeDataPathOptions, BridgeNetwork } from "./options.ts";

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
const node = () => present.node;

describe("an agent that starts again", () => {
  async function again(
    change: () => unknown,
    options: Partial<BridgeDataPathOptions> = {},
    changes: Partial<BridgeNetwork> = {},
  ) {
    const before = await started();
    await before.attach(requestFor("a", 10));
    await before.attach(requestFor("b", 11));
    await before[Symbol.asyncDispose]();
    change();
    const dataPath = await started(changes, options);
    return dataPath;
  }
  /** The IPv4 addresses by which frames of a pod may come in, in the kernel's packet rules. */
  const admitted = (sandboxId: string): readonly string[] => {
    const index = new Uint8Array(Uint32Array.of(hostOf(sandboxId).index).buffer).toHex();
    return node()
      .filter.elements("bridge pipette-br0", "pods4")
      .filter((key) => key.startsWith(index))
      .map((key) => key.slice(-8));
  };

  test("finds its pods guarded, and changes nothing", async () => {
    const whole: string[] = [];
    const all = () =>
      ["ports", "pods4", "pods6"].flatMap((set) => node().filter.elements("bridge pipette-br0", set)).toSorted();
    await using dataPath = await again(() => whole.push(...all()));
    expect(all()).toEqual(whole);
    expect(await problems(dataPath)).toEqual([]);
    expect(hostOf("a")).toMatchObject({ up: true, master: bridge().index });
  });

  test.each([
    ["off the bridge", () => node().own.leave(hostOf("a"))],
    ["down", (): unknown => (hostOf("a").up = false)],
    ["learning", () => hostOf("a").port.set(8, 1)],
    ["without hairpin's setting", () => hostOf("a").port.set(4, 1)],
    ["without its MAC on the bridge", (): unknown => (node().own.neighbours = [])],
  ] as const)("puts a port back that is %s", async (_name, change) => {
    await using dataPath = await again(change);
    const host = hostOf("a");
    expect(host).toMatchObject({ up: true, master: bridge().index });
    expect([host.port.get(4), host.port.get(8)]).toEqual([0, 0]);
    expect(node().own.neighbours.some(({ index }) => index === host.index)).toBe(true);
    expect(await problems(dataPath)).toEqual([]);
  });

  test("sets ports right whose network is told otherwise now", async () => {
    await using _dataPath = await again(() => undefined, {}, { hairpin: true });
    expect(hostOf("a").port.get(4)).toBe(1);
  });

  test("believes the lease before what stands, what stands before the pod, and the pod where it has nothing else", async () => {
    const ip = (text: string): Ip => parseIp(text)!;
    {
      await using _dataPath = await again(() => undefined, {
        leasedTo: ({ sandboxId }) => (sandboxId === "a" ? [ip("10.77.0.20")] : []),
      });
      expect(admitted("a")).toContain("0a4d0014");
      expect(admitted("a")).not.toContain("0a4d000a");
      expect(admitted("b")).toContain("0a4d000b");
    }
    present.node = new NodeInMemory();
    await using _dataPath = await again(() => {
      node().filter.tables.clear();
      // A pod has given itself the gateway's and the other pod's.
      const pod = podOf("b");
      const { index } = pod.named("eth0")!;
      for (const last of [1, 10])
        pod.addresses.push({ index, family: 2, prefix: 24, ip: Uint8Array.of(10, 77, 0, last) });
    });
    expect(admitted("a")).toContain("0a4d000a");
    expect(admitted("b")).toContain("0a4d000b");
    expect(admitted("b")).not.toContain("0a4d000a");
    expect(admitted("b")).not.toContain("0a4d0001");
  });

  test("asks no allocator about addresses of another", async () => {
    const before = await started();
    await before.attach(requestFor("a", 10, { ownLease: false }));
    await before[Symbol.asyncDispose]();
    await using _dataPath = await started({}, { leasedTo: () => [parseIp("10.77.0.20")!] });
    expect(
      node()
        .filter.elements("bridge pipette-br0", "pods4")
        .some((key) => key.endsWith("0a4d000a")),
    ).toBe(true);
  });

  test("lets no port up without packet rules, and says so", async () => {
    await using dataPath = await again(() => {
      hostOf("a").up = false;
      node().filter.tables.clear();
      node().filter.before = (action) => {
        if (action.includes('of the table "pipette-br0"')) throw new Refusal(Errno.EOPNOTSUPP);
      };
    });
    expect(hostOf("a").up).toBe(false);
    expect(lines).toEqual([
      expect.stringContaining('Cannot set up the packet rules of the bridge \\"br0\\"'),
      expect.stringContaining('Cannot tell the node which addresses are pods\' of the bridge \\"br0\\"'),
    ]);
    node().filter.before = () => undefined;
    expect((await problems(dataPath)).length).toBeGreaterThan(0);
  });

  test("takes away what a killed one has left half made", async () => {
    await using _dataPath = await again(() => {
      node().own.add({ name: "half", kind: "veth", group: 0x70697001, master: bridge().index });
      node().own.add({ name: "bare", kind: "veth", group: 0x70697001 });
      const other = node().own.add({ name: "br9", kind: "bridge" });
      node().own.add({ name: "theirs", kind: "veth", group: 0x70697001, master: other.index });
    });
    expect(node().own.named("half")).toBeUndefined();
    expect(node().own.named("bare")).toBeUndefined();
    expect(node().own.named("theirs")).toBeDefined();
  });

  test("puts the other pods back where one is refused, and says of which", async () => {
    await using _dataPath = await again(() => {
      const broken = hostOf("a").name;
      for (const each of ["a", "b"]) node().own.leave(hostOf(each));
      node().before = (action) => {
        if (action === `change the interface "${broken}"`) throw new Refusal(Errno.EBUSY);
      };
    });
    expect(hostOf("b")).toMatchObject({ up: true, master: bridge().index });
    expect(lines).toEqual([expect.stringContaining("cannot put a pod back on its bridge")]);
  });
});

describe("what pods' ports lack", () => {
  const twoPods = async () => {
    const dataPath = await started();
    for (const [i, each] of ["a", "b"].entries()) await dataPath.attach(requestFor(each, 10 + i));
    return dataPath;
  };
  test.each([
    [1, (): unknown => (hostOf("a").up = false), "1 pod's port is down"],
    [2, () => ["a", "b"].map((each) => (hostOf(each).up = false)), "2 pods' ports are down"],
    [1, () => node().own.leave(hostOf("a")), `1 pod's port is off the bridge "br0"`],
    [2, () => ["a", "b"].map((each) => node().own.leave(hostOf(each))), `2 pods' ports are off the bridge "br0"`],
    [
      1,
      (): unknown => (node().own.neighbours = node().own.neighbours.filter(({ index }) => index !== hostOf("a").index)),
      `1 port is without its pod's hardware address on the bridge "br0"`,
    ],
    [
      2,
      (): unknown => (node().own.neighbours = []),
      `2 ports are without their pods' hardware address on the bridge "br0"`,
    ],
  ] as const)("is told of %i pods", async (_count, change, says) => {
    await using dataPath = await twoPods();
    change();
    expect(await problems(dataPath)).toEqual([`51 ${says}`]);
  });

  test("is nothing where the pod has gone meanwhile", async () => {
    await using dataPath = await twoPods();
    const { index } = hostOf("a");
    hostOf("a").up = false;
    // It goes between the list of interfaces and the closer look.
    node().before = (action) => {
      if (action === "list the hardware addresses of a bridge" && node().own.links.has(index)) node().own.remove(index);
    };
    expect(await problems(dataPath)).toEqual([]);
  });

  test.each([
    ["up", (): unknown => (hostOf("a").up = false), (): unknown => (hostOf("a").up = true)],
    ["on the bridge", (): unknown => (hostOf("a").master = 0), (): unknown => (hostOf("a").master = bridge().index)],
  ] as const)("is nothing where somebody has put it %s again meanwhile", async (_name, change, back): Promise<void> => {
    await using dataPath = await twoPods();
    change();
    node().before = (action) => {
      if (action === "list the hardware addresses of a bridge") back();
    };
    expect(await problems(dataPath)).toEqual([]);
  });

  test("is all that they have where the bridge goes meanwhile", async () => {
    await using dataPath = await twoPods();
    const { index } = bridge();
    node().before = (action) => {
      if (action === "list the hardware addresses of a bridge" && node().own.links.has(index)) node().own.remove(index);
    };
    expect(await problems(dataPath)).toEqual([
      `51 2 ports are without their pods' hardware address on the bridge "br0"`,
    ]);
  });
});

test("a pod that goes while its port is put back is no error", async () => {
  const before = await started();
  await before.attach(requestFor("a", 10));
  await before[Symbol.asyncDispose]();
  const { name, index } = hostOf("a");
  node().own.leave(hostOf("a"));
  node().before = (action) => {
    if (action === `change the interface "${name}"` && node().own.links.has(index)) node().own.remove(index);
  };
  await using _dataPath = await started();
  expect(lines).toEqual([]);
});
