import { expect, test } from "vitest";
import { vnidFor } from "./pod-vnid.ts";

test("a pod's VNID is what the registry says last, else asked for, and none where projects are not kept apart", async () => {
  const asked: string[] = [];
  const tenants = { vnidOf: async (name: string) => asked.push(name) + 40 } as never;
  const owner = { network: "pods", sandboxId: "a", ifname: "eth0" };
  const port = { owner, port: "a-p", mac: "02:00:00:00:01:01", ips: [], netns: "/run/netns/a", ownLease: true };
  const pod = { ...port, pod: { namespace: "shop", name: "a", uid: "u" } };
  expect(await vnidFor(pod, undefined, new Map([["shop", 3]]))).toBe(0);
  expect(await vnidFor(pod, tenants, new Map([["shop", 3]]))).toBe(3);
  expect(asked).toEqual([]);
  expect(await vnidFor(pod, tenants, undefined)).toBe(41);
  expect(asked).toEqual(["shop"]);
  await expect(vnidFor(port, tenants, undefined)).rejects.toMatchObject({ code: 7 });
});
