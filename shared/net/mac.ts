/** `02:00:5e:10:00:ff`, lower case. */
export function formatMac(bytes: Uint8Array): string {
  return bytes.toHex().replace(/..(?!$)/g, "$&:");
}

/** Reads six hex pairs with ":" or "-" between them; `undefined` where the text is something else. */
export function parseMac(text: string): Uint8Array | undefined {
  if (!/^[0-9a-f]{2}([:-][0-9a-f]{2}){5}$/i.test(text)) return undefined;
  return Uint8Array.from(text.split(/[:-]/), (pair) => Number.parseInt(pair, 16));
}

export const macRule = 'one such as "02:42:0a:01:02:03"';

/** The text with colons and in lower case; `undefined` where it is no hardware address that an interface can have. */
export function interfaceMac(text: string): string | undefined {
  const bytes = parseMac(text);
  // The lowest bit of the first octet marks a group address, which no interface can have.
  if (bytes === undefined || ((bytes[0] ?? 1) & 1) === 1 || bytes.every((byte) => byte === 0)) return undefined;
  return formatMac(bytes);
}
