/** `02:00:5e:10:00:ff`, lower case. */
export function formatMac(bytes: Uint8Array): string {
  const hex = bytes.toHex();
  let text = hex.slice(0, 2);
  for (let at = 2; at < hex.length; at += 2) text += `:${hex.slice(at, at + 2)}`;
  return text;
}

const macBytes = 6;
const macChars = 3 * macBytes - 1;

/** Reads six hex pairs with ":" or "-" between them; `undefined` where the text is something else. */
export function parseMac(text: string): Uint8Array | undefined {
  // Without regular expressions: an ADD reads several, and these cost it more than all else about them.
  if (text.length !== macChars) return undefined;
  const bytes = new Uint8Array(macBytes);
  for (let i = 0; i < macBytes; i++) {
    const high = hexDigit(text.charCodeAt(3 * i));
    const low = hexDigit(text.charCodeAt(3 * i + 1));
    const behind = text[3 * i + 2] ?? ":";
    if (high === undefined || low === undefined || (behind !== ":" && behind !== "-")) return undefined;
    bytes[i] = high * 16 + low;
  }
  return bytes;
}

function hexDigit(code: number): number | undefined {
  if (code >= 48 && code <= 57) return code - 48;
  const letter = code | 0x20;
  return letter >= 97 && letter <= 102 ? letter - 87 : undefined;
}

export const macRule = 'one such as "02:42:0a:01:02:03"';

/** The text with colons and in lower case; `undefined` where it is no hardware address that an interface can have. */
export function interfaceMac(text: string): string | undefined {
  const bytes = parseMac(text);
  // The lowest bit of the first octet marks a group address, which no interface can have.
  if (bytes === undefined || ((bytes[0] ?? 1) & 1) === 1 || bytes.every((byte) => byte === 0)) return undefined;
  return formatMac(bytes);
}
