import { type Pointer, read } from "bun:ffi";

/**
 * The full path of a Windows system library, for `dlopen`: a bare name would be searched beside the executable and in
 * the working directory first, where another file of that name may lie.
 */
export function systemLibrary(name: string): string {
  const root = process.env["SystemRoot"] ?? "";
  return `${/^[A-Za-z]:\\/.test(root) ? root : "C:\\Windows"}\\System32\\${name}`;
}

/** UTF-16 with its final zero in memory that does not move: an argument of type `LPCWSTR`. */
export function wide(text: string): Uint16Array {
  const units = new Uint16Array(new ArrayBuffer(2 * (text.length + 1)));
  for (let i = 0; i < text.length; i++) units[i] = text.charCodeAt(i);
  return units;
}

/** The text of an `LPWSTR` that a call has answered; at most `longestText` units of it. */
export function wideTextAt(address: Pointer): string {
  let text = "";
  for (let at = 0; text.length < longestText; at += 2) {
    const unit = read.u16(address, at);
    if (unit === 0) break;
    text += String.fromCharCode(unit);
  }
  return text;
}

/** Far beyond any name, descriptor or identifier. */
const longestText = 32_768;

/** What `CreateFileW` answers where it fails: all ones. */
export const invalidHandle = -1;

/** <winerror.h>: those that are told apart. */
export const winError = {
  fileNotFound: 2,
  accessDenied: 5,
  invalidHandle: 6,
  lockViolation: 33,
  invalidParameter: 87,
  semTimeout: 121,
  brokenPipe: 109,
  alreadyExists: 183,
  badPipe: 230,
  pipeBusy: 231,
  noData: 232,
  pipeNotConnected: 233,
  ioIncomplete: 996,
  ioPending: 997,
} as const;
