import { errnoName } from "./errno.ts";

/** What the kernel said about one message, or about the socket itself. */
export class NetlinkError extends Error {
  override readonly name = "NetlinkError";
  readonly errno: number;
  /** The kernel's own sentence (extended acknowledgement), often empty. */
  readonly kernelText: string;

  /** `action` continues "Cannot …", such as `add address "10.1.2.3/24"`. */
  constructor(action: string, errno: number, kernelText = "") {
    super(`Cannot ${action}: the kernel answers ${errnoName(errno)}${kernelText === "" ? "" : ` (${kernelText})`}`);
    this.errno = errno;
    this.kernelText = kernelText;
  }
}

/** Whether the kernel has answered with this number. */
export function isErrno(caught: unknown, errno: number): caught is NetlinkError {
  return caught instanceof NetlinkError && caught.errno === errno;
}
