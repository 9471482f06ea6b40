import type { Entrances } from "./service-sets.ts";

/** How one of a service's endpoints is chosen. */
export interface Choice {
  /** 0: nobody answers. */
  readonly slots: number;
  /** Those of a list that is only for whoever comes from outside. */
  readonly isOwnList: boolean;
  /** The client is hidden behind the node. Where nobody answers: it is not told so. */
  readonly isHidden: boolean;
  /** A client keeps its slot for so long; 0: it does not. */
  readonly affinitySeconds: number;
}

/** The numbers of such a list's slots begin here. */
export const ownListFrom = 0x10_0000;

/** The name of its chain at such entrances. */
export function choiceName({ endpoints }: Entrances, choice: Choice): string {
  const { slots, isOwnList, isHidden, affinitySeconds } = choice;
  if (slots === 0) return `${endpoints.name}-${isHidden ? "drop" : "refuse"}`;
  const manners = [
    ...(isOwnList ? ["external"] : []),
    ...(isHidden ? ["hidden"] : []),
    ...(affinitySeconds > 0 ? [`${affinitySeconds}s`] : []),
  ];
  return [endpoints.name, slots, ...manners].join("-");
}
