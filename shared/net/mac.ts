/** `02:00:5e:10:00:ff`, lower case. */
export function formatMac(bytes: Uint8Array): string {
  const hex = bytes.toHex();
  // In one step: piece by piece it takes twice as long, and an ADD makes several.
  if (hex.length === 2 * macBytes)
    return `${hex.slice(0, 2)}:${hex.slice(2, 4)}:${hex.slice(4, 6)}:${hex.slice(6, 8)}:${hex.slice(8, 10)}:${hex.slice(10)}`;
  return hex.match(/../g)?.join(":") ?? "";
}

const macBytes = 6;

const hexPairs = /^[0-9a-f]{2}(?:[:-][0-9a-f]{2}){5}$/i;

/** Reads six hex pairs with ":" or "-" between them; `undefined` where the text is something else. */
export function parseMac(text: string): Uint8Array | undefined {
  return hexPairs.test(text) ? Uint8Array.fromHex(text.replaceAll(":", "").replaceAll("-", "")) : undefined;
}

export const macRule = 'one such as "02:42:0a:01:02:03"';

/** The text with colons and in lower case; `undefined` where it is no hardware address that an interface can have. */
export function interfaceMac(text: string): string | undefined {
  const bytes = parseMac(text);
  // The lowest bit of the first octet marks a group address, which no interface can have.
  if (bytes === undefined || ((bytes[0] ?? 1) & 1) === 1 || bytes.every((byte) => byte === 0)) return undefined;
  return formatMac(bytes);
}
