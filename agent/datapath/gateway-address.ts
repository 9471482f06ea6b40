import { CniCode, CniError } from "../../shared/errors.ts";
import { type Cidr, contains, firstOf, formatCidr, plus } from "../../shared/net/ip.ts";

/** The first address of the block, with the block's prefix length. */
export function gatewayAddress(subnet: Cidr): Cidr {
  const ip = plus(firstOf(subnet), 1n);
  if (!contains(subnet, ip)) {
    throw new CniError(
      CniCode.invalidConfig,
      `Cannot use the subnet "${formatCidr(subnet)}": it has no room for a gateway, wanted a larger block`,
    );
  }
  return { ip, prefix: subnet.prefix };
}
