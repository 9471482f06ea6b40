import { expect, test } from "vitest";
import { ipamTerminal } from "../../test/fakes/ipam-terminal.ts";

async function withPods() {
  const node = ipamTerminal();
  await node.allocate("abcdef1");
  await node.allocate("abcdef2");
  return node;
}

test.each([["10.1.0.2"], ["10.1.0.2/24"], ["::ffff:10.1.0.2"], ["FD00:0001:0:0::2"], ["default/abcdef1"], ["abcdef1"]])(
  "%s is one thing",
  async (what) => {
    using node = await withPods();
    const { status, stdout, stderr } = await node.run("show", what);
    expect([status, stderr]).toEqual([0, ""]);
    expect(stdout).toMatch(/^sandbox +abcdef1$/m);
    expect(stdout).toMatch(/^pod +default\/abcdef1$/m);
    expect(stdout).toMatch(/^boot +this one$/m);
    expect(stdout).not.toContain("abcdef2");
    // Both addresses of a pod, one where one was asked for.
    expect(stdout.match(/^address /gm)).toHaveLength(what.includes(".") || what.includes("::") ? 1 : 2);
  },
);

test("the beginning of ids may fit several sandboxes: they are listed, with a status of its own", async () => {
  using node = await withPods();
  const { status, stdout, stderr } = await node.run("show", "abc");
  expect(status).toBe(4);
  expect(stdout.split("\n").filter((line) => / allocated /.test(line))).toHaveLength(4);
  expect(stderr).toBe('"abc" fits 2 different things\n');
  expect((await node.run("show", "abcdef2")).status).toBe(0);
});

test("a pod's name alone will do where no sandbox is called so", async () => {
  using node = ipamTerminal();
  await node.json("allocate", "--conf", node.conf, "--container", "s1", "--pod", "shop/web");
  expect((await node.run("show", "web")).stdout).toMatch(/^pod +shop\/web$/m);
});

test.each([
  ["10.1.0.9", '"10.1.0.9" has no lease and lies in blue 10.1.0.1-10.1.0.254'],
  ["10.9.0.9", '"10.9.0.9" has no lease and lies in no range that gave addresses'],
  ["default/nobody", 'nothing is "default/nobody"'],
  ["x\u001b[31m", 'nothing is "x\\u001b[31m"'],
])("%j is not there", async (what, wanted) => {
  using node = await withPods();
  const { status, stdout, stderr } = await node.run("show", what);
  expect([status, stdout]).toEqual([3, ""]);
  expect(stderr).toContain(wanted);
  expect((await node.run("show", what, "--json")).stdout).toBe("[]\n");
});

test("tells which leases are of an earlier boot", async () => {
  using node = await withPods();
  await node.change((store) => {
    for (const lease of store.select({ by: "network" })) store.put({ ...lease, bootId: "another" });
  });
  expect((await node.run("show", "10.1.0.2")).stdout).toMatch(/^boot +an earlier one: the owner may be gone$/m);
});
