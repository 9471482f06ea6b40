/** Writing DER (X.690), as far as certificates and requests for them have it. */

/** One value: what it is, its length, and its contents. */
export function der(tag: number, ...contents: readonly ArrayLike<number>[]): Uint8Array {
  const length = contents.reduce((sum, part) => sum + part.length, 0);
  const size = length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  const bytes = new Uint8Array(1 + size.length + length);
  bytes.set([tag, ...size]);
  let at = 1 + size.length;
  for (const part of contents) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

export const integer = (bytes: ArrayLike<number>): Uint8Array => der(0x02, bytes);

export const utf8 = (text: string): Uint8Array => der(0x0c, new TextEncoder().encode(text));

/** Of bits that fill whole bytes. */
export const bits = (bytes: ArrayLike<number>): Uint8Array => der(0x03, [0], bytes);

export const noValue: Uint8Array = der(0x05);

/** @param text `2.5.4.3` */
export function oid(text: string): Uint8Array {
  const [first = 0, second = 0, ...rest] = text.split(".").map(Number);
  const bytes = [first * 40 + second];
  for (const part of rest) {
    const digits = [part & 0x7f];
    for (let left = part >>> 7; left > 0; left >>>= 7) digits.unshift((left & 0x7f) | 0x80);
    bytes.push(...digits);
  }
  return der(0x06, bytes);
}

/** `YYMMDDhhmmssZ` until 2049, and with the whole year from then on. */
export function time(date: Date): Uint8Array {
  const text = `${date.toISOString().slice(0, 19).replaceAll(/[-:T]/g, "")}Z`;
  const isShort = date.getUTCFullYear() < 2050;
  return der(isShort ? 0x17 : 0x18, new TextEncoder().encode(isShort ? text.slice(2) : text));
}

/** A block of PEM. @param label `CERTIFICATE` */
export const pem = (label: string, bytes: Uint8Array): string =>
  `-----BEGIN ${label}-----\n${(bytes.toBase64().match(/.{1,64}/g) ?? []).join("\n")}\n-----END ${label}-----\n`;
