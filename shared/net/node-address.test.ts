import { expect, test } from "vitest";
import { formatIp } from "./ip.ts";
import { parseNodeAddress } from "./node-address.ts";

test.each([
  ...["0.0.0.0", "0.1.2.3", "127.0.0.1", "127.255.255.254", "::ffff:127.0.0.1", "224.0.0.1", "239.1.1.1", "240.0.0.1"],
  ...["255.255.255.255", "::", "::1", "ff02::1", "ffff::1", "", "nonsense", "10.0.0.1/24"],
])("%j is no node's address", (text) => {
  expect(parseNodeAddress(text)).toBeUndefined();
});

test.each(["1.0.0.1", "10.0.0.1", "126.255.255.255", "128.0.0.1", "223.255.255.255", "169.254.7.7", "::2", "fd00::5"])(
  "%j may be one",
  (text) => {
    expect(formatIp(parseNodeAddress(text)!)).toBe(text);
  },
);
