/**
 * How an operator's tool says who asks an agent. The API server takes `authorization` off what it passes on to pods, so
 * a token of its own travels in a header of its own: of an account that has no other right, for one node's agent alone,
 * and for minutes. Whoever catches it, the agent too, can ask that one agent with it, and nobody else.
 */
export const operatorToken = {
  /** The bare token. */
  header: "x-pipette-token",
  /** What such a token is good for, as TokenRequest and TokenReview have it. */
  audienceOf: (node: string): string => `agent.pipette.io/${node}`,
} as const;
