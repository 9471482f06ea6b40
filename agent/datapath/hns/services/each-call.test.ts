import { describe, expect, test } from "vitest";
import { type Document, listOf } from "../../../../test/fakes/hns/documents.ts";
import type { Fault } from "../../../../test/fakes/hns/faults.ts";
import { ip } from "../../../../test/fakes/hns/hns-node.ts";
import { endpoint, port } from "../../../../test/fakes/hns/service-ports.ts";
import {
  addressOf,
  apply,
  other,
  own,
  ServicesNode,
  second,
  servicesOf,
  web,
} from "../../../../test/fakes/hns/services-node.ts";
import type { ServicePort, ServiceProxy } from "../../services.ts";
import { isOwnId } from "./own-ids.ts";

const hns = new ServicesNode();

const db = port({ key: "default/db:sql", clusterIp: ip("10.96.0.11"), internal: [own] });
const before = [web({ nodePort: 30_080, external: [own, other] }), db];
const after = [web({ internal: [second, endpoint("10.9.1.10")], affinitySeconds: 10_800 })];
const changes: readonly (readonly [from: readonly ServicePort[], to: readonly ServicePort[]])[] = [
  [[], before],
  [before, after],
  [after, []],
];

const mishaps: Readonly<Record<string, Omit<Fault, "call">>> = {
  "is refused": { hresult: 0x80004005, times: 1 },
  "is not done and gets no answer": { holdMs: "until released", times: 1 },
  "is done and gets no answer": { holdMs: "until released", effectFirst: true, times: 1 },
  "is done and its answer lost": { afterwards: 0x800706be, times: 1 },
  // As all that come after it: nothing else of the agent arrives.
  "is the first that a killed agent does not make": { hresult: 0x800706be },
};

const theirs = "99999999-0000-4000-8000-000000000001";

/** Somebody else's, beside ours. */
function putTheirs(): void {
  const HostComputeNetwork = hns.fake.networks[0]?.["ID"];
  hns.fake.put("endpoint", theirs, { HostComputeNetwork, Flags: 1, IpConfigurations: [{ IpAddress: "10.9.3.9" }] });
  hns.fake.put("loadBalancer", theirs, { HostComputeEndpoints: [theirs], FrontendVIPs: ["10.96.0.99"] });
}

/** All that HNS has, with addresses in place of identifiers. */
function picture(): readonly unknown[] {
  const addresses = new Map(hns.fake.endpoints.map((each) => [String(each["ID"]), addressOf(each)]));
  const drawn = ({ ID: _, HostComputeEndpoints: ids, ...rest }: Document): string => {
    const to = (ids as readonly string[]).map((id) => addresses.get(id.toUpperCase())).sort();
    return JSON.stringify([rest["FrontendVIPs"], listOf(rest, "PortMappings"), rest["Flags"], rest["SourceVIP"], to]);
  };
  return [hns.balancers.map(drawn).sort(), [...addresses.values()].sort()];
}

async function nextAgent(): Promise<ServiceProxy> {
  const next = hns.again();
  await next.start();
  return servicesOf(next);
}

const isKnown = ({ ID }: Document): boolean => ID === theirs || isOwnId(String(ID).toLowerCase());

describe("whichever call of a change", () => {
  test.each(
    Object.keys(mishaps).flatMap((name) => [
      [name, "L2Bridge", {}, [13, 3]] as const,
      [name, "L2Bridge, whose load balancers change in place", {}, [15, 5]] as const,
      [name, "Overlay", { type: "Overlay", vsid: 4096 }, [13, 3]] as const,
    ]),
  )(
    "%s, the next agent on %s has all as wanted, and nothing is nobody's",
    async (name, _, network, [Major, Minor]) => {
      await hns.start({}, network, Minor, Major);
      putTheirs();
      for (const [from, to] of changes) {
        await apply(await nextAgent(), ...from);
        const { calls } = hns.fake.service;
        let agent = await nextAgent();
        const begun = calls.length;
        await apply(agent, ...to);
        const expected = picture();
        const count = calls.slice(begun).filter(({ fn }) => !fn.startsWith("HcnClose")).length;
        expect(count).toBeGreaterThan(5);
        for (let n = 0; n < count; n++) {
          const what = `call ${n} of ${count}`;
          await apply(agent, ...from);
          agent = await nextAgent();
          const mishap = hns.fake.service.fault({ ...mishaps[name], call: "*", skip: n });
          await apply(agent, ...to).catch(() => undefined);
          mishap[Symbol.dispose]();
          expect([what, hns.balancers.filter((each) => !isKnown(each))]).toEqual([what, []]);
          agent = await nextAgent();
          expect([what, await apply(agent, ...to), picture()]).toEqual([what, [], expected]);
        }
      }
    },
    120_000,
  );
});

test.each(["HcnCreateLoadBalancer", "HcnCreateEndpoint"])(
  "what a killed agent asked for by %s comes true while the next one works: taken over, and there once",
  async (call) => {
    const first = await hns.start();
    {
      using _ = hns.fake.service.fault({ call, hresult: 0x800706be });
      await apply(first, web()).catch(() => undefined);
    }
    const asked = hns.fake.service.calls.find(({ fn }) => fn === call);
    const kind = call === "HcnCreateEndpoint" ? "endpoint" : "loadBalancer";
    const next = await nextAgent();
    const comesTrue = () => hns.fake.put(kind, asked?.id ?? "", JSON.parse(asked?.texts[0] ?? "{}") as Document);
    using _ = hns.fake.service.fault({ call, times: 1, meanwhile: comesTrue });
    expect(await apply(next, web())).toEqual([]);
    expect([hns.ids.length, hns.remotes, hns.places()]).toEqual([1, ["10.9.1.9"], ["10.9.0.7:8080", "10.9.1.9:8080"]]);
    if (kind === "loadBalancer") expect(hns.ids).toEqual([asked?.id.toUpperCase()]);
    expect(await hns.changesOf(() => apply(next, web()))).toEqual({});
  },
);
