import type { Family, Ip } from "../../../../shared/ip.ts";
import type { PipelineContext } from "./context.ts";

/** The families that pods have: those of the gateway's addresses. */
export const familiesOf = ({ gateway }: PipelineContext): readonly Family[] =>
  ([4, 6] as const).filter((family) => gateway.addresses.some((ip) => ip.family === family));

export const ofFamily = <T extends Ip>(ips: readonly T[], family: Family): readonly T[] =>
  ips.filter((ip) => ip.family === family);
