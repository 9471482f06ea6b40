import type { Libc } from "./libc.linux.ts";

/**
 * systemd's readiness protocol (sd_notify(3)): one datagram to the socket that `NOTIFY_SOCKET` names.
 * Without it nothing happens. Answers what went wrong, in words, or `undefined`.
 */
export function notifySystemd(
  env: Readonly<Record<string, string | undefined>>,
  libc: Libc,
  state: string,
): string | undefined {
  const socket = env["NOTIFY_SOCKET"] ?? "";
  if (socket === "") return undefined;
  if (!socket.startsWith("/") && !socket.startsWith("@"))
    return `Cannot notify systemd: NOTIFY_SOCKET is "${socket}", wanted a path or an abstract name`;
  const errno = libc.sendDatagram(socket, state);
  return errno === 0
    ? undefined
    : `Cannot notify systemd: "${socket}" answers errno ${errno}, wanted it to take "${state}"`;
}
