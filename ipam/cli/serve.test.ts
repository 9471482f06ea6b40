import { copyFileSync, writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import { ipamTerminal } from "../../test/fakes/ipam-terminal.ts";

test("a service has one configuration for each network, with its own data directory, and is none before that", async () => {
  using node = ipamTerminal();
  const again = `${node.path}/again.conflist`;
  copyFileSync(node.conf, again);
  const socket = `${node.path}/ipam.sock`;
  expect(await node.run("serve", "--socket", socket, "--conf", node.conf, "--conf", again)).toMatchObject({
    status: 1,
    stderr: 'Cannot serve network "blue": two configurations have this name, wanted one\n',
  });
  const ipam = { type: "pipette-ipam", dataDir: "/elsewhere", ranges: [[{ subnet: "10.2.0.0/24" }]] };
  writeFileSync(again, JSON.stringify({ cniVersion: "1.0.0", name: "red", plugins: [{ type: "bridge", ipam }] }));
  expect(await node.run("serve", "--socket", socket, "--conf", node.conf, "--conf", again)).toMatchObject({
    status: 1,
    stderr: `Cannot serve network "red": its "ipam.dataDir" is "/elsewhere", wanted "${node.dataDir}", where the service keeps its leases\n`,
  });
});
