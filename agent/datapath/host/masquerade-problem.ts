const stand = " masquerade rules stand in the table ";

/** `0 of 2 masquerade rules stand in the table "pipette-pipette0"`: by the agent as by who looks from outside. */
export const masqueradeProblem = (found: number, wanted: number, table: string): string =>
  `${found} of ${wanted}${stand}"${table}"`;

export const isMasqueradeProblem = (sentence: string): boolean => sentence.includes(stand);
