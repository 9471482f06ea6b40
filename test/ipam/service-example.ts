import { GrpcCode, IpamClient, RpcError } from "pipette/ipam-client";

// Without a path the one of `pipette ipam serve` counts.
using ipam = new IpamClient(process.env["IPAM_SOCKET"]);

const attachment = { network: "pods", containerId: "0123abcd", ifname: "eth0" };
const configuration = { cniVersion: "1.1.0", name: "pods", ipam: { ranges: [[{ subnet: "10.1.0.0/16" }]] } };
try {
  const { leases } = await ipam.allocate({ ...attachment, configuration });
  console.log(leases[0]?.address);
} catch (error) {
  if (error instanceof RpcError && error.grpcCode === GrpcCode.resourceExhausted) console.error(error.message);
  else throw error;
}
for await (const lease of ipam.list("pods")) console.log(lease.address, lease.state, lease.containerId);
const [released] = await ipam.release(attachment);
console.log(released?.state);
