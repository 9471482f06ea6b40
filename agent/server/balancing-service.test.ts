import { expect, test } from "vitest";
import { parseCidr, parseIp } from "../../shared/net/ip.ts";
import type { BalancedService } from "../../shared/proto/daemon-services.ts";
import type { CallContext } from "../../shared/server/handlers.ts";
import type { ServicePort } from "../datapath/services.ts";
import type { NodeServices } from "../services/mod.ts";
import { balancingRpcs } from "./balancing-service.ts";

const at = (address: string, isLocal: boolean) => ({ ip: parseIp(address)!, port: 8080, weight: 100, isLocal });
const port: ServicePort = {
  ...{ key: "x/web", protocol: "tcp", port: 80, nodePort: 30_080, clusterIp: parseIp("10.96.0.1")! },
  ...{ externalIps: [parseIp("192.0.2.1")!], ingressIps: [], sourceRanges: [parseCidr("10.0.0.0/8")!] },
  ...{ internal: [at("10.0.0.1", true), at("fd00::1", false)], external: [at("10.0.0.1", true)] },
  ...{ cluster: [at("fd00::1", false)], keepsClient: true, preservesDestination: false },
};

async function listed(of: Pick<NodeServices, "wanted" | "refusalOf"> | undefined): Promise<BalancedService[]> {
  const [rpc] = balancingRpcs(() => of);
  const answers = rpc?.handle({}, {} as CallContext) as AsyncIterable<BalancedService>;
  return await Array.fromAsync(answers);
}

test("tells each port of each service, and for whom its endpoints answer", async () => {
  const services = { wanted: new Map([[port.key, port]]), refusalOf: () => "too many" };
  expect(await listed(services)).toEqual([
    {
      ...{ key: "x/web", protocol: "tcp", clusterIp: "10.96.0.1", port: 80, nodePort: 30_080 },
      ...{ externalIps: ["192.0.2.1"], ingressIps: [], restricted: true, sourceRanges: ["10.0.0.0/8"] },
      ...{ affinitySeconds: 0, keepsClient: true, healthCheckNodePort: 0, refused: "too many" },
      endpoints: [
        { address: "[fd00::1]:8080", local: false, internal: true, external: false, cluster: true },
        { address: "10.0.0.1:8080", local: true, internal: true, external: true, cluster: false },
      ],
    },
  ]);
  await expect(listed(undefined)).rejects.toThrow("the agent balances no services");
});
