import { afterAll, beforeAll, expect, test } from "vitest";
import { PolicyControllerDouble } from "../../fakes/policy-controller.ts";
import { addresses, computed, patched, policy, targets } from "../../fakes/policy-events.ts";
import { describeWith } from "../../support/requires.ts";
import { describeWine } from "../wine/describe-wine.ts";
import { NodeSwitch, OverlayWindowsNode, portOf } from "./overlay-node.ts";

const namespaces = { server: "5a5a5a5a-0000-4000-8000-000000000001", client: "5a5a5a5a-0000-4000-8000-000000000002" };
const ips = { server: "10.9.0.2", client: "10.9.0.3" };

describeWith(
  "network policies of a Windows node that a real Open vSwitch forwards for",
  ["root", "openvswitch"],
  () => {
    let real: NodeSwitch;
    beforeAll(async () => {
      real = await NodeSwitch.start();
    });
    afterAll(() => real?.[Symbol.asyncDispose]());

    describeWine("in Wine", (wine) => {
      const stack = new AsyncDisposableStack();
      const ports = { server: "", client: "" };
      let node: OverlayWindowsNode;
      let controller: PolicyControllerDouble;
      const start = () =>
        node.start({}, { policies: { controller: controller.url, token: "C:\\token", waitMs: 1_000 } });
      beforeAll(async () => {
        controller = stack.use(await PolicyControllerDouble.start());
        controller.state = [
          addresses("clients", "y/nobody 10.9.7.7"),
          targets("servers", "x/server"),
          policy("web", "servers", [{ groups: ["clients"], ports: ["TCP/80"] }]),
          ...["server", "client"].map((name) => computed(`x/${name}`)),
        ];
        wine.prefix.write("C:\\token", "a token");
        node = stack.use(await OverlayWindowsNode.make(wine.prefix, real));
        for (const namespace of Object.values(namespaces)) node.windows.addNamespace(namespace);
        await start();
      });
      afterAll(() => stack.disposeAsync());

      const add = async (name: "server" | "client"): Promise<void> => {
        const args = `IgnoreUnknown=1;K8S_POD_NAMESPACE=x;K8S_POD_NAME=${name};K8S_POD_UID=x/${name}`;
        ports[name] = portOf(await node.windows.cni("ADD", name, { netns: namespaces[name], args }));
        node.startContainer(ports[name]);
        await expect.poll(() => real.flowsOf(ips[name]), { timeout: 20_000 }).not.toEqual([]);
      };
      /** Whether a first packet of the client gets to the server's port. */
      const arrives = async (port: number): Promise<boolean> => {
        const [from, to] = [await real.podMac(ports.client), await real.podMac(ports.server)];
        const packet = `dl_src=${from},dl_dst=${to},nw_src=${ips.client},nw_dst=${ips.server},nw_ttl=64,tp_dst=${port}`;
        const traced = await real.trace(`in_port=${ports.client},tcp,${packet}`);
        return (
          traced.split("\n").at(-1)?.endsWith(`,${ports.server}`) === true ||
          traced.includes(`actions: ${ports.server}`)
        );
      };

      test("are flows as on Linux, and follow their changes; endpoints have no ACLs", async () => {
        await add("server");
        await add("client");
        expect([await arrives(80), await arrives(81)]).toEqual([false, false]);
        controller.tell(patched("AddressGroup", "clients", [`x/client ${ips.client}`]));
        await expect.poll(() => arrives(80), { timeout: 20_000 }).toBe(true);
        expect(await arrives(81)).toBe(false);
        expect(node.windows.endpoints().flatMap((endpoint) => endpoint["Policies"])).toEqual([]);
      });

      test("are in force again before anything else where the agent has ended and its controller is away", async () => {
        const before = (await real.flows()).length;
        await node.windows.stop();
        controller.refusal = 503;
        await start();
        expect([await arrives(80), await arrives(81)]).toEqual([true, false]);
        expect((await real.flows()).length).toBe(before);
      });
    });
  },
);
