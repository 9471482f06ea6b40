import { CniCode, CniError } from "../../shared/errors.ts";
import { type Cidr, contains, formatCidr, gatewayIn } from "../../shared/net/ip.ts";

/** The gateway of the block, with the block's prefix length. */
export function gatewayAddress(subnet: Cidr): Cidr {
  const ip = gatewayIn(subnet);
  if (!contains(subnet, ip)) {
    throw new CniError(
      CniCode.invalidConfig,
      `Cannot use the subnet "${formatCidr(subnet)}": it has no room for a gateway, wanted a larger block`,
    );
  }
  return { ip, prefix: subnet.prefix };
}
