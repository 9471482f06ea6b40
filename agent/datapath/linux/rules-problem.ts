const stand = " packet rules stand in the table ";
const ofPods = "packet rules about pods";

/** `0 of 2 packet rules stand in the table "pipette-pipette0"`: by the agent as by who looks from outside. */
export const rulesProblem = (found: number, wanted: number, table: string): string =>
  `${found} of ${wanted}${stand}"${table}"`;

/** Of those that look into sets of pods, whose elements the agent alone knows. @param elements how many are missing; absent: rules are */
export const podRulesProblem = (table: string, elements?: number): string =>
  elements === undefined
    ? `the ${ofPods} are not all there in the table "${table}"`
    : `the ${ofPods} lack ${elements} elements in the table "${table}"`;

export const isRulesProblem = (sentence: string): boolean => sentence.includes(stand) || sentence.includes(ofPods);
