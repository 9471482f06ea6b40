import { type Allocated, GrpcCode, IpamClient, RpcError } from "../../../ipam/service/ipam-client.ts";

/**
 * `ipam-calls.exe PIPE NAME COUNT`: with the exported client takes and gives back COUNT addresses one after another,
 * keeps one more, and prints it and how many leases it sees. Where the service is away it tries again.
 */

const [pipe = "", name = "", count = "1"] = process.argv.slice(2);
const configuration = {
  cniVersion: "1.1.0",
  name: "net",
  ipam: { type: "pipette-ipam", ranges: [[{ subnet: "10.88.0.0/16" }]] },
};
const patientUntil = performance.now() + 30_000;

async function patiently<T>(call: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await call();
    } catch (caught) {
      const away = caught instanceof RpcError && caught.grpcCode === GrpcCode.unavailable;
      if (!away || performance.now() > patientUntil) throw caught;
      await Bun.sleep(20);
    }
  }
}

using client = new IpamClient(pipe);
const allocate = (containerId: string): Promise<Allocated> =>
  patiently(() => client.allocate({ containerId, ifname: "eth0", configuration }));

for (let i = 0; i < Number(count); i++) {
  const attachment = { network: "net", containerId: `${name}-${i}`, ifname: "eth0" };
  const { leases } = await allocate(attachment.containerId);
  const [held] = await patiently(() => client.get(attachment));
  if (held?.address !== leases[0]?.address) throw new Error(`got ${leases[0]?.address}, and holds ${held?.address}`);
  await patiently(() => client.release(attachment));
}
const { leases } = await allocate(name);
const all = await Array.fromAsync(client.list("net"));
console.log(JSON.stringify({ address: leases[0]?.address, seen: all.length }));
