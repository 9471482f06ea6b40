import { beforeEach, expect, test, vi } from "vitest";
import { openLinuxSystem } from "./system.linux.ts";

const sent: (readonly [string, string])[] = [];
let errno = 0;
vi.mock("./libc.linux.ts", () => ({
  openLibc: () => ({
    lockFile: () => true,
    sendDatagram(path: string, text: string) {
      sent.push([path, text]);
      return errno;
    },
  }),
}));

beforeEach(() => {
  sent.length = 0;
  errno = 0;
});

test.each(["/run/systemd/notify", "@abstract"])("systemd is told at %s", (socket) => {
  expect(openLinuxSystem().notify({ NOTIFY_SOCKET: socket }, "READY=1")).toBeUndefined();
  expect(sent).toEqual([[socket, "READY=1"]]);
});

test("without systemd nobody is told, and what cannot be told is said", () => {
  const { notify } = openLinuxSystem();
  expect([notify({}, "READY=1"), notify({ NOTIFY_SOCKET: "" }, "READY=1")]).toEqual([undefined, undefined]);
  expect(notify({ NOTIFY_SOCKET: "relative" }, "READY=1")).toContain('NOTIFY_SOCKET is "relative"');
  expect(sent).toEqual([]);
  errno = 111;
  expect(notify({ NOTIFY_SOCKET: "/gone" }, "READY=1")).toContain("errno 111");
});
