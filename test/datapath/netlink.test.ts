import { afterAll, beforeAll, expect, test } from "vitest";
import { linkGroup, takeOutOfService } from "../../agent/datapath/linux/host-links.ts";
import {
  addRoute,
  createBridge,
  declareNeighbour,
  deleteLink,
  deleteLinksOfGroup,
  deleteRoute,
  Errno,
  forgetNeighbour,
  getLink,
  Kernel,
  listLinks,
  listNeighbours,
  listRoutes,
  NetlinkError,
  readLink,
  readNeighbour,
  readRoute,
  setLink,
} from "../../agent/protocols/netlink/mod.ts";
import { type Cidr, formatIp, parseCidr, parseIp, sameIp } from "../../shared/net/ip.ts";
import { parseMac } from "../../shared/net/mac.ts";
import { NetworkSandbox } from "../support/network-sandbox.ts";
import { describeWith } from "../support/requires.ts";

describeWith("rtnetlink against the kernel", ["root"], () => {
  let sandbox: NetworkSandbox;
  const kernel = new DisposableStack();
  let opened: Kernel;

  beforeAll(async () => {
    sandbox = await NetworkSandbox.enter("pt-cn-");
    opened = kernel.use(new Kernel());
  });
  afterAll(async () => {
    kernel.dispose();
    await sandbox[Symbol.asyncDispose]();
  });

  const bridge = (name: string, mac: number) =>
    createBridge({ name, mac: Uint8Array.of(2, 0, 0, 0, mac >> 8, mac & 255), mtu: 1500 });

  const refusalOf = (call: () => unknown): NetlinkError => {
    try {
      call();
    } catch (caught) {
      if (caught instanceof NetlinkError) return caught;
      throw caught;
    }
    throw new Error("It succeeded");
  };

  test("a batch says per message what became of it, and goes on behind a refusal", () => {
    using socket = opened.openSocket();
    const results = socket.batch([
      bridge("ptn0", 1),
      bridge("ptn0", 2),
      setLink("ptn9", 9999, { up: true }),
      bridge("ptn1", 3),
    ]);
    expect(results.map((refusal) => refusal?.errno)).toEqual([undefined, Errno.EEXIST, Errno.ENODEV, undefined]);
    expect(socket.get(getLink({ name: "ptn1" }), readLink)).toMatchObject({ kind: "bridge", mac: "02:00:00:00:00:03" });
    expect(socket.batch([])).toEqual([]);
  });

  test("what is so already is no refusal where the message says so, whichever place it has in its batch", () => {
    using socket = opened.openSocket();
    socket.batch([bridge("pth0", 9)]);
    const { index } = socket.get(getLink({ name: "pth0" }), readLink);
    const unknown = forgetNeighbour("pth0", index, parseIp("10.9.9.9")!);
    const refused = setLink("ptn9", 9999, { up: true });
    const errnos = (...messages: Parameters<typeof socket.batch>[0]) =>
      socket.batch(messages).map((refusal) => refusal?.errno);
    expect(errnos(unknown)).toEqual([undefined]);
    expect(errnos(unknown, refused, unknown)).toEqual([undefined, Errno.ENODEV, undefined]);
    expect(errnos(forgetNeighbour("ptn9", 9999, parseIp("10.9.9.9")!))).toEqual([Errno.ENODEV]);
  });

  test("an interface stands as long as it is what it was when it was read, and up", () => {
    using socket = opened.openSocket();
    const read = () => socket.get(getLink({ name: "pts0" }), readLink);
    socket.batch([bridge("pts0", 7), bridge("pts1", 8)]);
    const down = read();
    expect(socket.stands(down)).toBe(false);
    const change = (change: Parameters<typeof setLink>[2]) => socket.run(setLink("pts0", down.index, change));
    change({ up: true });
    expect(socket.stands(down)).toBe(true);
    expect(socket.stands({ ...down, name: "pts1" })).toBe(false);
    expect(socket.stands({ ...down, name: "pts9" })).toBe(false);
    change({ mac: Uint8Array.of(2, 0, 0, 0, 0, 9) });
    expect([socket.stands(down), socket.stands(read())]).toEqual([false, true]);
    socket.run(deleteLink("pts0", down.index));
    socket.run(bridge("pts0", 7));
    socket.run(setLink("pts0", read().index, { up: true }));
    expect([socket.stands(down), socket.stands(read())]).toEqual([false, true]);
  });

  test("a refusal carries the kernel's own sentence", () => {
    using socket = opened.openSocket();
    const refusal = refusalOf(() => socket.run(bridge("name-of-sixteen!", 1)));
    expect(refusal.errno).toBe(Errno.ERANGE);
    expect(refusal.message).toBe(
      'Cannot create the bridge "name-of-sixteen!": the kernel answers ERANGE (Attribute failed policy validation)',
    );
    expect(refusalOf(() => socket.get(getLink({ name: "ptn7" }), readLink)).errno).toBe(Errno.ENODEV);
  });

  test("a retired interface is down, out of its bridge, and in the group that is swept", async () => {
    using socket = opened.openSocket();
    socket.run(bridge("ptr0", 6));
    await sandbox.node("ip link add ptr1 up master ptr0 type veth peer name ptr2");
    const before = socket.get(getLink({ name: "ptr1" }), readLink);
    expect(before).toMatchObject({ up: true, group: 0 });
    expect(before.master).not.toBe(0);
    takeOutOfService(socket, before);
    expect(socket.get(getLink({ name: "ptr1" }), readLink)).toMatchObject({
      up: false,
      master: 0,
      group: linkGroup.toDelete,
    });
    await sandbox.node("ip link del ptr1");
    // Gone is as good.
    takeOutOfService(socket, before);
  });

  test.each([
    { ip: "169.254.0.253", prefix: 32, cidr: "10.96.0.0/16" },
    { ip: "fc01::aabb:ccdd:eeff", prefix: 128, cidr: "fd00:96::/112" },
  ])("a neighbour by declaration, and routes by way of it: $ip", async ({ ip: text, prefix, cidr }) => {
    using socket = opened.openSocket();
    const ip = parseIp(text)!;
    const dsts: Cidr[] = [{ ip, prefix }, parseCidr(cidr)!];
    socket.run(bridge("ptg0", 7));
    const { index } = socket.get(getLink({ name: "ptg0" }), readLink);
    socket.run(setLink("ptg0", index, { up: true }));
    const mac = parseMac("aa:bb:cc:dd:ee:ff")!;
    // Repeated, as an agent that starts again does it, in place of another.
    socket.run(declareNeighbour("ptg0", index, ip, parseMac("02:00:00:00:00:01")!));
    for (let i = 0; i < 2; i++) socket.run(declareNeighbour("ptg0", index, ip, mac));
    const neighbours = socket.dump(listNeighbours(index), readNeighbour).filter((found) => found.permanent);
    expect(neighbours.filter((found) => sameIp(found.ip, ip))).toEqual([
      { index, ip, mac: "aa:bb:cc:dd:ee:ff", permanent: true },
    ]);
    const routes = dsts.map((dst) => ({ dst, gateway: ip, index, onLink: true, protocol: 112 }));
    for (const route of routes) socket.run(addRoute(route));
    const ours = () => socket.dump(listRoutes(ip.family), readRoute).filter((route) => route.protocol === 112);
    expect(ours()).toEqual(expect.arrayContaining(dsts.map((dst) => expect.objectContaining({ dst, protocol: 112 }))));
    expect(ours()).toHaveLength(2);
    expect(await sandbox.node(`ip route get ${formatIp(dsts[1]!.ip)}`)).toContain(`via ${text} dev ptg0`);
    for (const route of routes) socket.run(deleteRoute(route));
    expect(ours()).toEqual([]);
    expect(refusalOf(() => socket.run(deleteRoute(routes[0]!))).errno).toBe(Errno.ESRCH);
    socket.run(forgetNeighbour("ptg0", index, ip));
    await sandbox.node("ip link del ptg0");
  });

  test("a dump over many datagrams is complete, and the group is deleted at once", async () => {
    using socket = opened.openSocket();
    using sweeper = opened.openSocket();
    const names = Array.from({ length: 60 }, (_, i) => `ptm${i}`);
    for (const [i, name] of names.entries()) {
      socket.run(bridge(name, 1000 + i));
      const { index } = socket.get(getLink({ name }), readLink);
      socket.run(setLink(name, index, { group: 4711 }));
    }
    const dumped = (): string[] =>
      socket
        .dump(listLinks(), readLink)
        .map((link) => link.name)
        .filter((name) => name.startsWith("ptm"));
    expect(dumped().sort()).toEqual([...names].sort());
    const deletion = sweeper.post(deleteLinksOfGroup(4711));
    // The other socket goes on working meanwhile.
    expect(socket.get(getLink({ name: "lo" }), readLink).index).toBe(1);
    await deletion;
    expect(dumped()).toEqual([]);
    await expect(sweeper.post(deleteLinksOfGroup(4711))).rejects.toMatchObject({ errno: Errno.ENODEV });
  });

  test("the thread comes home from every namespace, and takes no other thread along", async () => {
    const path = await sandbox.addPod();
    const before = sandbox.threadNamespaces();
    const target = opened.namespaceAt(path);
    if (target.t !== "open") throw new Error(target.t);
    using namespace = target.namespace;
    let garbage: unknown[] = [];
    for (let i = 0; i < 5000; i++) {
      using socket = opened.openSocketIn(namespace);
      // Garbage collection starts threads: they must not be born in the pod.
      garbage.push(new Array(2000).fill(i));
      if (i % 500 === 0) {
        expect(socket.dump(listLinks(), readLink)).toHaveLength(1);
        garbage = [];
        Bun.gc(false);
      }
    }
    expect(before).toEqual(expect.arrayContaining([...sandbox.threadNamespaces()]));
  });

  test("a closed socket lets the namespace go, and is closed only once", async () => {
    const path = await sandbox.addPod();
    const target = opened.namespaceAt(path);
    if (target.t !== "open") throw new Error(target.t);
    const socket = opened.openSocketIn(target.namespace);
    target.namespace[Symbol.dispose]();
    target.namespace[Symbol.dispose]();
    socket[Symbol.dispose]();
    socket[Symbol.dispose]();
    expect(refusalOf(() => socket.run(bridge("ptn5", 5))).errno).toBe(Errno.EBADF);
    await sandbox.removePod(path);
    expect(opened.namespaceAt(path)).toEqual({ t: "missing" });
  });
});
