import type { Family } from "../../../../shared/net/ip.ts";
import type { PipelineContext } from "./context.ts";

/** The families that pods have: those of the gateway's addresses. */
export const familiesOf = ({ gateway }: PipelineContext): readonly Family[] =>
  ([4, 6] as const).filter((family) => gateway.addresses.some((ip) => ip.family === family));
