/** `02:00:5e:10:00:ff`, lower case. */
export function formatMac(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join(":");
}

/** Reads six hex pairs with ":" or "-" between them; `undefined` where the text is something else. */
export function parseMac(text: string): Uint8Array | undefined {
  if (!/^[0-9a-f]{2}([:-][0-9a-f]{2}){5}$/i.test(text)) return undefined;
  return Uint8Array.from(text.split(/[:-]/), (pair) => Number.parseInt(pair, 16));
}
