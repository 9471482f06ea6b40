import { expect, test } from "vitest";
import { describeWine } from "../wine/describe-wine.ts";
import { executables } from "../wine/prefix.ts";
import { WindowsNode } from "./windows-node.ts";

const guid = (n: number): string => `00000000-0000-0000-0000-00000000000${n}`;

describeWine("pipette doctor on a Windows node", (wine) => {
  test("compares leases with the agent's endpoints, and has the agent mend a lease whose endpoint is gone", async () => {
    await using node = await WindowsNode.make(wine.prefix);
    await node.start();
    for (const n of [1, 2]) {
      node.addNamespace(guid(n));
      expect(await node.cni("ADD", `p${n}`, { netns: guid(n) })).toMatchObject({ t: "ok" });
    }
    const doctor = async (...more: readonly string[]) => {
      const args = ["doctor", "--config", node.configFile, "--json", ...more];
      const { status, stdout, stderr } = await node.prefix.start(`${executables}/pipette.exe`, {
        args,
        timeoutMs: 60_000,
      }).ended;
      if (stdout === "") throw new Error(`status ${status}: ${stderr}`);
      return { status, ...JSON.parse(stdout) };
    };
    const head = { kind: "doctor", version: 1, node: expect.any(String) };
    expect(await doctor()).toEqual({ status: 0, ...head, leases: 2, interfaces: 2, findings: [], repaired: [] });
    // With its sandbox: else the agent makes it again.
    const { endpoints, namespaces } = node.stubs.hns.store;
    const [[id, endpoint] = ["", {}]] = [...endpoints];
    endpoints.delete(id);
    namespaces.delete(String(endpoint["HostComputeNamespace"]));
    expect(await doctor()).toMatchObject({
      status: 1,
      findings: [{ code: "lease-without-interface", repairable: true }],
    });
    const after = await doctor("--repair");
    expect(after).toMatchObject({
      status: 0,
      interfaces: 1,
      findings: [],
      repaired: [{ done: "let its addresses cool" }],
    });
  });
});
