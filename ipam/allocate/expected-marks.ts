import type { Owner } from "../../shared/cni/types.ts";
import type { IpamConfig } from "../config/ipam-config.ts";
import { integrityMarks } from "../recovery/integrity.ts";
import { cooldownMark } from "./cooldown.ts";
import { cursorMark, generationMark, hostLocalMark, interfaceMark } from "./marks.ts";

/** The marks that an allocation reads, all of them in the usual case. */
export const expectedMarks = (owner: Owner, { rangeSets }: IpamConfig): readonly string[] => [
  ...integrityMarks(owner.network),
  hostLocalMark(owner.network),
  cooldownMark(owner.network),
  generationMark,
  interfaceMark(owner),
  ...rangeSets.map((set) => cursorMark(owner.network, set)),
];
