import { dlopen, type Pointer, ptr } from "bun:ffi";
import { systemLibrary, wide, wideTextAt } from "./win32.windows.ts";

/**
 * Security descriptors as text (SDDL, learn.microsoft.com/windows/win32/secauthz/security-descriptor-string-format).
 * Who may use what our daemons create: LocalSystem and the administrators, without inherited rights.
 */
export const administratorsOnly = "D:P(A;;GA;;;SY)(A;;GA;;;BA)";

const symbols = {
  ConvertStringSecurityDescriptorToSecurityDescriptorW: { args: ["ptr", "u32", "ptr", "ptr"], returns: "i32" },
  ConvertSecurityDescriptorToStringSecurityDescriptorW: { args: ["ptr", "u32", "u32", "ptr", "ptr"], returns: "i32" },
  GetKernelObjectSecurity: { args: ["i64", "u32", "ptr", "u32", "ptr"], returns: "i32" },
  SetKernelObjectSecurity: { args: ["i64", "u32", "ptr"], returns: "i32" },
} as const;

const kernelSymbols = {
  LocalFree: { args: ["ptr"], returns: "ptr" },
  GetLastError: { args: [], returns: "u32" },
} as const;

const revision = 1;
const ownerInformation = 1;
const daclInformation = 4;
const protectedDaclInformation = 0x8000_0000;
/** A descriptor of ours has some 80 bytes; the most that Windows takes for a list of entries is 64 KiB. */
const descriptorBytes = 64 * 1024 + 256;
/** `SECURITY_ATTRIBUTES`: its own length, the descriptor's address at byte 8, whether the handle is inherited. */
const attributesBytes = 24;

/** A descriptor in memory of Windows, which has to be freed. */
export interface Descriptor extends Disposable {
  readonly address: Pointer;
  /** `SECURITY_ATTRIBUTES` with it, for the call that makes an object: no child inherits the handle. */
  attributes(): Uint8Array;
}

/** Reads and changes the descriptors of open objects, such as a pipe or a directory. */
export interface Descriptors {
  parse(sddl: string): Descriptor;
  /** The object's access list as text. The handle needs READ_CONTROL. */
  accessOf(handle: number): string;
  /** The SID of the object's owner, as in `S-1-5-18`; the handle needs READ_CONTROL. */
  ownerOf(handle: number): string;
  /** Replaces the access list by the one in the text. The handle needs WRITE_DAC. */
  setAccess(handle: number, sddl: string): void;
}

/** Each of these throws an `Error` that names the call of Windows and its error. */
export function openDescriptors(): Descriptors {
  const a = dlopen(systemLibrary("advapi32.dll"), symbols).symbols;
  const { LocalFree, GetLastError } = dlopen(systemLibrary("kernel32.dll"), kernelSymbols).symbols;
  const required = (answer: number, call: string): void => {
    if (answer === 0) throw new Error(`${call} answers error ${GetLastError()}`);
  };
  const parse = (sddl: string): Descriptor => {
    const out = new BigUint64Array(1);
    const converted = a.ConvertStringSecurityDescriptorToSecurityDescriptorW(ptr(wide(sddl)), revision, ptr(out), null);
    required(converted, "ConvertStringSecurityDescriptorToSecurityDescriptor");
    const address = Number(out[0]) as Pointer;
    return {
      address,
      attributes() {
        const view = new DataView(new ArrayBuffer(attributesBytes));
        view.setUint32(0, attributesBytes, true);
        view.setBigUint64(8, BigInt(address), true);
        return new Uint8Array(view.buffer);
      },
      [Symbol.dispose]: () => void LocalFree(address),
    };
  };
  const textOf = (handle: number, information: number): string => {
    const descriptor = new Uint8Array(new ArrayBuffer(descriptorBytes));
    const needed = new Uint32Array(1);
    const got = a.GetKernelObjectSecurity(handle, information, ptr(descriptor), descriptorBytes, ptr(needed));
    required(got, "GetKernelObjectSecurity");
    const out = new BigUint64Array(1);
    const call = a.ConvertSecurityDescriptorToStringSecurityDescriptorW;
    required(call(ptr(descriptor), revision, information, ptr(out), null), "ConvertSecurityDescriptorToString");
    const text = Number(out[0]) as Pointer;
    try {
      return wideTextAt(text);
    } finally {
      LocalFree(text);
    }
  };
  return {
    parse,
    accessOf: (handle) => textOf(handle, daclInformation),
    ownerOf: (handle) => textOf(handle, ownerInformation).replace(/^O:/, ""),
    setAccess(handle, sddl) {
      using descriptor = parse(sddl);
      const information = daclInformation | protectedDaclInformation;
      required(a.SetKernelObjectSecurity(handle, information >>> 0, descriptor.address), "SetKernelObjectSecurity");
    },
  };
}

/**
 * Whether a descriptor that was read back grants access only to those of `administratorsOnly`. The kernel stores
 * specific rights, so "all" comes back as `FA` or as its number.
 */
export function isAdministratorsOnly(sddl: string): boolean {
  const entry = (who: string): string => `\\(A;(?:OICI)?;(?:GA|FA|0x1f01ff);;;${who}\\)`;
  const [system, administrators] = [entry("SY"), entry("BA")];
  return new RegExp(`^D:P(?:AI|AR)*(?:${system}${administrators}|${administrators}${system})$`).test(sddl);
}
