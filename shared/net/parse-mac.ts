const macPattern = /^[0-9a-f]{2}(:[0-9a-f]{2}){5}$/;

export const macRule = 'one such as "02:42:0a:01:02:03"';

/** The text with colons and in lower case; `undefined` where it is no hardware address that an interface can have. */
export function interfaceMac(text: string): string | undefined {
  const mac = text.toLowerCase().replaceAll("-", ":");
  // The lowest bit of the first octet marks a group address, which no interface can have.
  const fits = macPattern.test(mac) && (Number.parseInt(mac.slice(0, 2), 16) & 1) === 0 && mac !== "00:00:00:00:00:00";
  return fits ? mac : undefined;
}
