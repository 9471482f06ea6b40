import { describe, expect, test } from "vitest";
import { readPod } from "../../shared/policy/mod.ts";
import {
  decodeObject,
  encodeObject,
  encodeWatchFrame,
  GroupMessage,
  GroupPatch,
  NetworkPolicyMessage,
  NetworkPolicyStatus,
} from "../../shared/proto/control-plane-messages.ts";
import { WireError } from "../../shared/proto/wire.ts";
import type { ComputedPolicy } from "./computed-policy.ts";
import { addressMember, groupMessage, patchMessage, policyMessage, targetMember } from "./wire-messages.ts";

/** Made with the generated Go types of Antrea 2.8. */
const group =
  "6b3873000a2e0a1e636f6e74726f6c706c616e652e616e747265612e696f2f76316265746132120c4164647265737347726f757012440a160a0361673112" +
  "001a0022002a03616731320038004200122a0a070a017012026e731a1000000000000000000000ffff0a010203220d08501204687474701a035443501a00" +
  "2200";
const networkPolicy =
  "6b3873000a2f0a1e636f6e74726f6c706c616e652e616e747265612e696f2f76316265746132120d4e6574776f726b506f6c6963791297010a1a0a057569" +
  "642d3112001a0022002a057569642d3132003803420012500a02496e121d0a0361673112160a140a1000000000000000000000ffff0a00000010081a0022" +
  "110a035443501206080010501a00185a3a0028ffffffffffffffffff013205416c6c6f7738004a005a001a046174673132210a104b38734e6574776f726b" +
  "506f6c69637912026e731a026e7022057569642d311a002200";
const bookmark =
  "6b3873000a2f0a1e636f6e74726f6c706c616e652e616e747265612e696f2f76316265746132120d4e6574776f726b506f6c69637912130a110a0012001a" +
  "0022002a00320137380042001a002200";
const status = "0a150a057569642d3112001a0022002a00320038004200120a0a026e31100318002200";

const pod = readPod({
  metadata: { namespace: "ns", name: "p" },
  spec: { containers: [{ ports: [{ name: "http", containerPort: 80 }] }] },
  status: { podIPs: [{ ip: "10.1.2.3" }] },
});
const pods = pod === undefined ? [] : [pod];

const policy: ComputedPolicy = {
  ...{ uid: "uid-1", namespace: "ns", name: "np", generation: 3, appliedTo: "atg1" },
  rules: [
    {
      t: "allow",
      direction: "ingress",
      peer: {
        addressGroups: ["ag1"],
        blocks: [{ t: "block", cidr: { ip: { family: 4, value: 0x0a000000n }, prefix: 8 }, except: [] }],
      },
      ports: [{ protocol: "TCP", port: 80, endPort: 90 }],
    },
  ],
};
const encoded = encodeObject("NetworkPolicy", NetworkPolicyMessage.encode(policyMessage(policy)));

describe("what agents get", () => {
  test("has the bytes that Antrea's controller would send", () => {
    const addresses = GroupMessage.encode(groupMessage("ag1", pods, addressMember));
    expect(encodeObject("AddressGroup", addresses).toHex()).toBe(group);
    expect(encoded.toHex()).toBe(networkPolicy);
    const frame = encodeWatchFrame("ADDED", encoded).toHex();
    expect(frame).toBe(`000000e00a05414444454412d6010ad301${networkPolicy}`);
    const { metadata } = NetworkPolicyMessage.absent();
    const empty = { ...NetworkPolicyMessage.absent(), metadata: { ...metadata, resourceVersion: "7" } };
    expect(encodeObject("NetworkPolicy", NetworkPolicyMessage.encode(empty)).toHex()).toBe(bookmark);
  });

  test("in patches, removed members are those of a group in a field of their own", () => {
    const removed = GroupPatch.encode(patchMessage("ag1", { added: [], removed: pods }, addressMember));
    const whole = GroupMessage.encode(groupMessage("ag1", pods, addressMember)).toHex();
    expect(removed.toHex()).toBe(whole.replace("122a0a07", "1a2a0a07"));
    const added = patchMessage("ag1", { added: pods, removed: [] }, targetMember);
    expect(GroupPatch.decode(GroupPatch.encode(added))).toEqual(added);
    expect(added.added).toEqual([{ pod: { namespace: "ns", name: "p" }, ips: [], ports: pod?.ports }]);
  });

  test("what isolates has no peers and no action, and a port has its number, its name, or neither", () => {
    const peer = { addressGroups: ["ag1"], blocks: [] };
    const ports = [{ protocol: "TCP", port: "web" } as const, { protocol: "UDP" } as const];
    const { rules } = policyMessage({
      ...policy,
      rules: [
        { t: "isolate", direction: "egress" },
        { t: "allow", direction: "egress", peer, ports },
      ],
    });
    const nobody = { addressGroups: [], ipBlocks: [] };
    expect(rules[0]).toMatchObject({ direction: "Out", from: nobody, to: nobody, services: [], action: "" });
    expect(rules[1]).toMatchObject({ direction: "Out", from: nobody, to: { addressGroups: ["ag1"] }, action: "Allow" });
    expect(rules[1]?.services).toEqual([
      { protocol: "TCP", port: { type: 1, number: 0, text: "web" }, endPort: 0, groupAddress: "" },
      { protocol: "UDP", endPort: 0, groupAddress: "" },
    ]);
  });

  test("is read back as it was", () => {
    const { kind, raw } = decodeObject(encoded);
    expect(kind).toBe("NetworkPolicy");
    expect(NetworkPolicyMessage.decode(raw)).toEqual(policyMessage(policy));
    expect(NetworkPolicyStatus.encode(NetworkPolicyStatus.decode(Uint8Array.fromHex(status))).toHex()).toBe(status);
  });

  test("is refused where it ends early, or is none", () => {
    // The last two fields are empty, and may be left out.
    const whole = [encoded.length - 2, encoded.length - 4];
    for (let length = 0; length < encoded.length; length++) {
      const cut = (): unknown => NetworkPolicyMessage.decode(decodeObject(encoded.subarray(0, length)).raw);
      if (!whole.includes(length)) expect(cut, String(length)).toThrow(WireError);
    }
    expect(() => decodeObject(encoded.subarray(4))).toThrow("does not begin as one of Kubernetes");
    const other = Uint8Array.fromHex(networkPolicy.replace("76316265746132", "76316265746133"));
    expect(() => decodeObject(other)).toThrow('wanted "controlplane.antrea.io/v1beta2"');
  });
});
