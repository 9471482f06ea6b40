/** As Kubernetes names nodes (RFC 1123, a subdomain): it goes into keys and on command lines. */
export const nodeNameRule = 'at most 253 lower-case letters, digits, "-" and ".", a letter or digit at both ends';

/** What is wrong with a node's name, or `undefined` where it will do. */
export const wrongNodeName = (text: string): string | undefined =>
  text.length <= 253 && /^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/.test(text) ? undefined : "no name of a node";
