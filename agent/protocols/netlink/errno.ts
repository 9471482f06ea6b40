/** Linux error numbers (asm-generic) that rtnetlink, sockets and namespaces answer with. */
export const Errno = {
  EPERM: 1,
  ENOENT: 2,
  ESRCH: 3,
  EINTR: 4,
  EIO: 5,
  ENXIO: 6,
  EBADF: 9,
  EAGAIN: 11,
  ENOMEM: 12,
  EACCES: 13,
  EFAULT: 14,
  EBUSY: 16,
  EEXIST: 17,
  ENODEV: 19,
  ENOTDIR: 20,
  EINVAL: 22,
  ENFILE: 23,
  EMFILE: 24,
  ENOTTY: 25,
  ENOSPC: 28,
  EROFS: 30,
  ERANGE: 34,
  ENAMETOOLONG: 36,
  ELOOP: 40,
  EDESTADDRREQ: 89,
  EMSGSIZE: 90,
  EPROTONOSUPPORT: 93,
  EOPNOTSUPP: 95,
  EAFNOSUPPORT: 97,
  EADDRINUSE: 98,
  EADDRNOTAVAIL: 99,
  ENETDOWN: 100,
  ENETUNREACH: 101,
  ENOBUFS: 105,
  ENOTCONN: 107,
  ECONNREFUSED: 111,
  EHOSTDOWN: 112,
  EHOSTUNREACH: 113,
  ENOKEY: 126,
} as const;

const names = new Map<number, string>(Object.entries(Errno).map(([name, number]) => [number, name]));

/** `EEXIST`, or `errno 123` where the table has no name. */
export function errnoName(errno: number): string {
  return names.get(errno) ?? `errno ${errno}`;
}
