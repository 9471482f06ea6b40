const stand = " packet rules stand in the table ";

/** `0 of 2 packet rules stand in the table "pipette-pipette0"`: by the agent as by who looks from outside. */
export const rulesProblem = (found: number, wanted: number, table: string): string =>
  `${found} of ${wanted}${stand}"${table}"`;

export const isRulesProblem = (sentence: string): boolean => sentence.includes(stand);
