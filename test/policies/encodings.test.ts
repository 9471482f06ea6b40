import { expect, test } from "vitest";
import type { ApiObject, Resource } from "../../shared/kubernetes/mod.ts";
import { decode, Input } from "../../shared/kubernetes/protobuf.ts";
import { networkPolicies, pods } from "../../shared/policy/mod.ts";

/** The bytes are what k8s.io/api 0.35.4 makes of the same objects. */
const policy = {
  metadata: { namespace: "x", name: "p", uid: "u", generation: 3 },
  spec: {
    podSelector: { matchLabels: { a: "b" } },
    policyTypes: ["Ingress", "Egress"],
    ingress: [
      {
        from: [
          {
            podSelector: { matchExpressions: [{ key: "c", operator: "In", values: ["d", "e"] }] },
            namespaceSelector: {},
          },
          { ipBlock: { cidr: "10.0.0.0/8", except: ["10.1.0.0/16"] } },
        ],
        ports: [{ protocol: "UDP", port: 80, endPort: 90 }, { port: "web" }],
      },
    ],
    egress: [{ to: [{ podSelector: {} }] }],
  },
};
const policyBytes =
  "0a130a017012001a017822002a017532003803420012730a080a060a016112016212500a0f0a035544501206080010501a00185a0a0b1209080110001a" +
  "0377656212130a0f120d0a01631202496e1a01641a01651200121b1a190a0a31302e302e302e302f38120b31302e312e302e302f31361a0412020a0022" +
  "07496e67726573732206456772657373";

const pod = {
  metadata: { namespace: "x", name: "p", uid: "u", labels: { a: "b" } },
  spec: {
    nodeName: "n1",
    hostNetwork: true,
    containers: [{ name: "c", ports: [{ name: "web", containerPort: 80, protocol: "TCP" }] }],
    initContainers: [
      { name: "i", restartPolicy: "Always", ports: [{ name: "dns", containerPort: 53, protocol: "UDP" }] },
    ],
  },
  status: { phase: "Running", podIP: "10.0.0.1", podIPs: [{ ip: "10.0.0.1" }, { ip: "fd00::1" }] },
};
const podBytes =
  "0a1b0a017012001a017822002a01753200380042005a060a0161120162128201122b0a016312002a0032100a037765621000185022035443502a004200" +
  "6a007200800100880100900100a201001a00320042004a0052026e315801600068008201008a01009a0100a201340a016912002a0032100a03646e7310" +
  "00183522035544502a0042006a007200800100880100900100a20100c20106416c77617973c201001a390a0752756e6e696e671a0022002a0032083130" +
  "2e302e302e314a005a00620a0a0831302e302e302e3162090a07666430303a3a317200880100";

test.each([
  ["a NetworkPolicy", networkPolicies as Resource<object>, policy, policyBytes],
  ["a Pod", pods as Resource<object>, pod, podBytes],
] as const)("%s is read alike in both encodings", (_, resource, object: ApiObject, hex) => {
  const bytes = Uint8Array.fromHex(hex);
  const read = resource.project(decode(new Input(bytes, 0, bytes.length), resource.fields ?? {}));
  expect(read).toEqual(resource.project(object));
  expect(read).not.toBeUndefined();
});
