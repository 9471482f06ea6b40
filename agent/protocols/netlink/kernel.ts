import { ChangeGroup, ChangeSocket } from "./change-socket.ts";
import { Errno, errnoName } from "./errno.ts";
import { Libc, pinned } from "./libc.ts";
import type { RawMessage } from "./message-reader.ts";
import { insideNamespace, type NetworkNamespace, type OpenedNamespace, openHome, openNamespace } from "./namespace.ts";
import { NetlinkBuffers } from "./netlink-buffers.ts";
import { NetlinkError } from "./netlink-error.ts";
import { NetlinkSocket, openDescriptor, Protocol } from "./netlink-socket.ts";
import { followReports } from "./nftables/reports.ts";
import { sysctlPath } from "./sysctl-path.ts";

const encoder = new TextEncoder();
const O_WRONLY_CLOEXEC = 0o1 | 0o2000000;
/** Of a path, its zero, and a value. */
const sysctlBytes = 4096 + 64;

/** The way from one thread to the kernel's network configuration, in its own namespace and in others. */
export class Kernel implements Disposable {
  readonly #libc = new Libc();
  readonly #buffers = new NetlinkBuffers();
  readonly #home = openHome(this.#libc);
  readonly #ports = new Set<number>();
  readonly #sysctl = pinned(sysctlBytes);

  /** Tells the states of a path apart; the caller disposes what is open. */
  namespaceAt(path: string): OpenedNamespace {
    return openNamespace(this.#libc, path, this.#home);
  }

  /** A socket in this process's own namespace. @throws {NetlinkError} */
  openSocket(): NetlinkSocket {
    return this.#socket(openDescriptor(this.#libc), () => "open a netlink socket", this.#ports);
  }

  /** A socket in this process's own namespace for what `nft` sets up. @throws {NetlinkError} */
  openPacketFilterSocket(): NetlinkSocket {
    return this.#socket(
      openDescriptor(this.#libc, Protocol.NETFILTER),
      () => "open a netlink socket for packet filters",
      this.#ports,
    );
  }

  /** A socket in this process's own namespace for the families of generic netlink. @throws {NetlinkError} */
  openGenericSocket(): NetlinkSocket {
    return this.#socket(openDescriptor(this.#libc, Protocol.GENERIC), () => "open a generic netlink socket");
  }

  /** Hears of changes to interfaces, addresses and routes of this process's own namespace. @throws {NetlinkError} */
  openLinkChanges(): ChangeSocket {
    const { LINK, IPV4_IFADDR, IPV4_ROUTE, IPV4_NETCONF, IPV6_IFADDR, IPV6_ROUTE, IPV6_NETCONF } = ChangeGroup;
    const [ipv4, ipv6] = [IPV4_IFADDR | IPV4_ROUTE | IPV4_NETCONF, IPV6_IFADDR | IPV6_ROUTE | IPV6_NETCONF];
    return this.#changes(Protocol.ROUTE, LINK | ipv4 | ipv6);
  }

  /** The same for what `nft` sets up. @throws {NetlinkError} */
  openPacketFilterChanges(): ChangeSocket {
    return this.#changes(Protocol.NETFILTER, ChangeGroup.NFTABLES);
  }

  /** Hears of the packets that rules report to a group, read by `readReport`. @throws {NetlinkError} */
  openPacketReports(group: number): ChangeSocket {
    const fd = openDescriptor(this.#libc, Protocol.NETFILTER);
    const asking = this.#socket(fd, () => "open a netlink socket for reports of packets");
    const reports = new ChangeSocket(this.#libc, fd, 0);
    try {
      asking.run(followReports(group));
      return reports;
    } catch (caught) {
      reports[Symbol.dispose]();
      throw caught;
    }
  }

  /** Whether a message tells of what a socket of ours has changed, where the kernel says so: of interfaces it does not. */
  isOwn({ port }: RawMessage): boolean {
    return this.#ports.has(port);
  }

  /** A socket inside `namespace`; while it is open it keeps the namespace alive. @throws {NetlinkError | SetnsError} */
  openSocketIn(namespace: NetworkNamespace): NetlinkSocket {
    const libc = this.#libc;
    const fd = insideNamespace(libc, this.#home, namespace, () => openDescriptor(libc));
    return this.#socket(fd, () => `open a netlink socket in "${namespace.path}"`);
  }

  /**
   * Writes a file of `/proc/sys/net`. By the C library itself: what `node:fs` does beside it costs an ADD a tenth of a
   * millisecond.
   * @param namespace the one that the file is to speak of, which is settled when it is opened; absent: the process's own
   * @throws {NetlinkError | SetnsError}
   */
  writeSysctl(path: string, value: string, namespace?: NetworkNamespace): void {
    const { bytes, address } = this.#sysctl;
    const text = `${sysctlPath(path)}\0`;
    const { read, written: valueAt } = encoder.encodeInto(text, bytes);
    if (read < text.length) throw new NetlinkError(`open "${path}"`, Errno.ENAMETOOLONG);
    const { written: length } = encoder.encodeInto(value, bytes.subarray(valueAt));
    const { open, write, close } = this.#libc.calls;
    const opened = (): number => open(address, O_WRONLY_CLOEXEC, 0);
    const fd = namespace === undefined ? opened() : insideNamespace(this.#libc, this.#home, namespace, opened);
    const place = (): string => (namespace === undefined ? "" : ` in "${namespace.path}"`);
    if (fd < 0) throw new NetlinkError(`open "${path}"${place()}`, this.#libc.errno());
    const isWritten = write(fd, (address + valueAt) as typeof address, length) === length;
    const errno = isWritten ? 0 : this.#libc.errno();
    close(fd);
    if (!isWritten) throw new NetlinkError(`write "${path}"${place()}`, errno);
  }

  [Symbol.dispose](): void {
    this.#home[Symbol.dispose]();
  }

  #changes(protocol: number, groups: number): ChangeSocket {
    const fd = openDescriptor(this.#libc, protocol);
    if (fd < 0) throw new NetlinkError("open a netlink socket for changes", this.#libc.errno());
    return new ChangeSocket(this.#libc, fd, groups);
  }

  #socket(fd: number, action: () => string, ports?: Set<number>): NetlinkSocket {
    if (fd < 0) throw new NetlinkError(action(), this.#libc.errno(), errnoName(this.#libc.errno()));
    return new NetlinkSocket(this.#libc, this.#buffers, fd, ports);
  }
}
