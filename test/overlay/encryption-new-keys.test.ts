import { afterAll, beforeAll, expect, test } from "vitest";
import { HeldInitiations } from "../../agent/datapath/ovs/linux/encryption/held-initiations.ts";
import { peerChanges, wantedPeers } from "../../agent/datapath/ovs/linux/encryption/wanted-peers.ts";
import { newPrivateKey, publicKeyOf, UserspaceDevice } from "../../agent/protocols/wireguard/mod.ts";
import { parseCidr, parseIp } from "../../shared/net/ip.ts";
import { eventually } from "../support/eventually.ts";
import { NetworkNamespace } from "../support/network-namespace.ts";
import { describeWith } from "../support/requires.ts";
import { answersIn } from "./lab/marked-pings.ts";
import { encryptingDevice, OwnRun } from "./lab/own-run.ts";
import { answers, pingsHeard } from "./lab/reach.ts";

const port = 51_820;
const changes = 40;
/** After how long the other one hears of a new key: each of these in turn, up to what agents need at least. */
const hearMs = [0, 1, 2, 3, 5, 8, 20];
const both = new Set([4]);

/** A namespace with the real daemon, as the other one is to reach it. */
class End implements AsyncDisposable {
  readonly namespace = NetworkNamespace.create();
  key = newPrivateKey();
  readonly #number: number;
  readonly #initiations = new HeldInitiations("gateway", port);
  #run: OwnRun | undefined;
  #device: UserspaceDevice | undefined;

  constructor(number: number) {
    this.#number = number;
  }

  get pod(): string {
    return `10.9.${this.#number}.1`;
  }

  get device(): UserspaceDevice {
    if (this.#device === undefined) throw new Error("The end has not been started");
    return this.#device;
  }

  /** The other node, as a registry tells it. */
  wanted() {
    const [address, subnet] = [parseIp(`192.0.2.${this.#number}`), parseCidr(`10.9.${this.#number}.0/24`)];
    if (address === undefined || subnet === undefined) throw new Error("Cannot read an address of the test's own");
    const encryption = { type: "wireguard", key: publicKeyOf(this.key) } as const;
    const node = { name: `n${this.#number}`, uid: "", addresses: [address], subnets: [subnet], encryption };
    return wantedPeers([node], both).peers;
  }

  /** The interface `wire` is there. */
  async start(other: number): Promise<void> {
    const { namespace } = this;
    await namespace.ip("link set lo up", "link set wire up", `addr add 192.0.2.${this.#number}/24 dev wire`);
    this.#run = await OwnRun.start(namespace);
    const { entering } = this.#run;
    const daemon = namespace.start(["nsenter", ...entering, "wireguard-go", encryptingDevice]);
    expect(await daemon.ended).toMatchObject({ status: 0 });
    const root = entering[0]?.replace("--mount=", "").replace("/ns/mnt", "/root") ?? "";
    this.#device = await UserspaceDevice.connect(`${root}/run/wireguard/${encryptingDevice}.sock`, () => undefined);
    await this.device.change({ privateKey: this.key, listenPort: port });
    await namespace.ip(
      `addr add ${this.pod}/32 dev ${encryptingDevice}`,
      `link set ${encryptingDevice} mtu 1400 up`,
      `route add 10.9.${other}.0/24 dev ${encryptingDevice}`,
    );
  }

  /** As the agent has it take a new key. */
  async takeNewKey(): Promise<void> {
    await this.namespace.within(() => this.#initiations.hold());
    this.key = newPrivateKey();
    await this.device.change({ privateKey: this.key });
  }

  /** As the agent has it hear of the other one. */
  async hear(other: End): Promise<void> {
    const standing = await this.device.read();
    await this.device.change({ peers: peerChanges(standing, other.wanted(), port, new Map()) });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#device?.[Symbol.dispose]();
    await this.#run?.[Symbol.asyncDispose]();
    this.namespace[Symbol.dispose]();
  }
}

describeWith("a node's new key at the other one", ["root", "wireguard-go", "tun", "nft"], () => {
  const stack = new AsyncDisposableStack();
  const [near, far] = [stack.use(new End(1)), stack.use(new End(2))];

  beforeAll(async () => {
    await near.namespace.ip(`link add wire type veth peer name wire netns ${far.namespace.path}`);
    await near.start(2);
    await far.start(1);
    await near.hear(far);
    await far.hear(near);
    await reached();
  });
  afterAll(() => stack.disposeAsync());

  const reached = () => eventually(() => answers(near.namespace, far.pod, { seconds: 1 }), "an answer");
  const ping = (from: End, to: End, seconds: number) =>
    from.namespace.start(["ping", "-n", "-i", String(seconds), "-c", "1000000", to.pod]);

  test(`loses no packet, in ${changes} changes`, async () => {
    // To the node with the new key so many that each moment has one. They wait for nothing there, but answers would.
    near.namespace.sysctl({ "ipv4/icmp_echo_ignore_all": 1 });
    const heardBefore = await pingsHeard(near.namespace);
    // None of them sends more than a hundred in a second as long as nobody answers.
    const flood = Array.from({ length: 8 }, () => ping(far, near, 0.01));
    // From there so few that the device keeps all of them (128) for seconds.
    const talk = ping(near, far, 0.02);
    try {
      for (let i = 0; i < changes; i++) {
        await near.takeNewKey();
        await Bun.sleep(hearMs[i % hearMs.length] ?? 0);
        await far.hear(near);
        await reached();
        await Bun.sleep(100);
      }
    } finally {
      for (const { pid } of [talk, ...flood]) process.kill(pid, "SIGINT");
    }
    const { answered, missing } = answersIn((await talk.ended).stdout);
    expect(missing).toEqual([]);
    expect(answered).toBeGreaterThan(4 * changes);
    let sent = 0;
    for (const { ended } of flood) sent += Number(/^(\d+) packets transmitted/m.exec((await ended).stdout)?.[1]);
    expect(sent).toBeGreaterThan(40 * changes);
    await expect.poll(async () => (await pingsHeard(near.namespace)) - heardBefore).toBe(sent);
  });
});
