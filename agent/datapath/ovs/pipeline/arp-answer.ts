import type { Ip } from "../../../../shared/net/ip.ts";
import { type Action, move, output, Port, setField, whole } from "../../../protocols/openflow/mod.ts";
import { registers, virtualMac } from "./registers.ts";

/** Turns an ARP request into its answer, which goes to the asker alone. @param ip what was asked for; `"asked"`: whatever it was */
export function answerArp(ip: Ip | "asked", mac: string = virtualMac): readonly Action[] {
  const address =
    ip === "asked"
      ? [
          move(whole("arp_tpa"), registers.scratch),
          move(whole("arp_spa"), whole("arp_tpa")),
          move(registers.scratch, whole("arp_spa")),
        ]
      : [move(whole("arp_spa"), whole("arp_tpa")), setField("arp_spa", ip)];
  return [
    move(whole("eth_src"), whole("eth_dst")),
    setField("eth_src", mac),
    setField("arp_op", 2),
    move(whole("arp_sha"), whole("arp_tha")),
    setField("arp_sha", mac),
    ...address,
    output(Port.IN_PORT),
  ];
}
