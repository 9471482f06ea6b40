import { afterAll, beforeAll, expect, test } from "vitest";
import { behind, Extension } from "../support/frames/extension-headers.ts";
import { fragments } from "../support/frames/fragments.ts";
import { EtherType, ethernet, mac, Protocol } from "../support/frames/frame.ts";
import { neighbourAdvertisement } from "../support/frames/icmp.ts";
import { RawLink } from "../support/frames/raw-link.ts";
import { NetworkNamespace } from "../support/network-namespace.ts";
import { describeWith } from "../support/requires.ts";
import { macOf } from "./lab/raw-pod.ts";

const [known, claimed] = ["02:00:00:00:00:01", "02:00:00:00:00:09"] as const;
const kinds = Object.keys(Extension) as (keyof typeof Extension)[];

/** What the guards of the pipeline go by: where else a receiver looks for neighbour discovery. */
describeWith("a Linux kernel that hears a neighbour advertisement", ["linux", "root"], () => {
  const open = new DisposableStack();
  let receiver: NetworkNamespace;
  let sender: RawLink;
  let to: string;

  beforeAll(async () => {
    const node = open.use(NetworkNamespace.create());
    receiver = open.use(NetworkNamespace.create());
    await node.ip(`link add left type veth peer name right netns ${receiver.path}`, "link set left up");
    await receiver.ip("link set right up", "addr add fd99::2/64 dev right nodad");
    sender = open.use(await RawLink.open(node, "left"));
    to = await macOf(receiver, "right");
  });
  afterAll(() => open.dispose());

  /** Whether it takes the claim that comes in these packets. @param host the last part of the neighbour's address */
  async function believes(host: number, packets: (from: string, message: Uint8Array) => readonly Uint8Array[]) {
    const neighbour = (part: number): string => `fd99::${part.toString(16)}`;
    const send = (part: number, make: typeof packets): void => {
      const message = neighbourAdvertisement({ from: neighbour(part), to: "fd99::2" }, neighbour(part), mac(claimed));
      for (const packet of make(neighbour(part), message))
        sender.send(ethernet({ from: claimed, to }, EtherType.ipv6, packet));
    };
    const knows = async (part: number): Promise<boolean> =>
      (await receiver.run(`ip neigh show ${neighbour(part)} dev right`)).includes(claimed);
    for (const part of [host, host + 1])
      await receiver.ip(`neigh replace ${neighbour(part)} lladdr ${known} dev right nud stale`);
    send(host, packets);
    // A plain one last: when that has come, the other has.
    send(host + 1, (from, message) => [behind({ from, to: "fd99::2" }, [], Protocol.icmp6, message)]);
    await expect.poll(() => knows(host + 1)).toBe(true);
    return knows(host);
  }

  test("looks behind options, and behind no header that it does not know", async () => {
    const believed: string[] = [];
    for (const [i, kind] of kinds.entries()) {
      const taken = await believes(0x100 + 2 * i, (from, message) => [
        behind({ from, to: "fd99::2" }, [Extension[kind]], Protocol.icmp6, message),
      ]);
      if (taken) believed.push(kind);
    }
    expect(believed).toEqual(["hopByHop", "destination"]);
  });

  test.each([
    [1, false],
    [0, true],
  ])("takes it in fragments where suppress_frag_ndisc is %i: %s", async (suppress, taken) => {
    receiver.sysctl({ "ipv6/conf/all/suppress_frag_ndisc": suppress, "ipv6/conf/right/suppress_frag_ndisc": suppress });
    const cut = (from: string, message: Uint8Array) => fragments({ from, to: "fd99::2" }, Protocol.icmp6, message, 24);
    expect(await believes(0x200 + 2 * suppress, cut)).toBe(taken);
  });
});
