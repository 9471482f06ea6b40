/** GUIDs, in our form everywhere: lower case, without braces. HNS writes either case. */

const pattern = /^\{?([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})\}?$/i;

/** All zeros: whoever is asked to make an object of this identifier chooses one. */
export const noGuid = "00000000-0000-0000-0000-000000000000";

/** `undefined` where the text is none. */
export const parseGuid = (text: string): string | undefined => pattern.exec(text)?.[1]?.toLowerCase();

/** The 16 bytes of Windows' structure: the first three groups are numbers, lowest byte first. @throws where the text is none */
export function guidBytes(text: string): Uint8Array<ArrayBuffer> {
  const guid = parseGuid(text);
  if (guid === undefined) throw new Error(`Cannot take "${text}" for an identifier: it is none, wanted a GUID`);
  const digits = guid.replaceAll("-", "");
  // A buffer of its own keeps its address.
  const bytes = new Uint8Array(new ArrayBuffer(16));
  for (let i = 0; i < 16; i++) bytes[i] = Number.parseInt(digits.slice(2 * i, 2 * i + 2), 16);
  bytes.subarray(0, 4).reverse();
  bytes.subarray(4, 6).reverse();
  bytes.subarray(6, 8).reverse();
  return bytes;
}
