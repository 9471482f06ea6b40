import { dlopen, FFIType, type Pointer, ptr } from "bun:ffi";
import { systemLibrary, wide, winError } from "./win32.windows.ts";

const symbols = {
  OpenProcess: { args: ["u32", "i32", "u32"], returns: FFIType.i64_fast },
  CloseHandle: { args: ["i64"], returns: "i32" },
  GetLastError: { args: [], returns: "u32" },
} as const;

const tokenSymbols = {
  OpenProcessToken: { args: ["i64", "u32", "ptr"], returns: "i32" },
  GetTokenInformation: { args: ["i64", "u32", "ptr", "u32", "ptr"], returns: "i32" },
  LookupAccountSidW: { args: ["ptr", "ptr", "ptr", "ptr", "ptr", "ptr", "ptr"], returns: "i32" },
} as const;

/** PROCESS_QUERY_LIMITED_INFORMATION, TOKEN_QUERY, and two members of TOKEN_INFORMATION_CLASS. */
const queryProcess = 0x1000;
const queryToken = 8;
const tokenUser = 1;
const tokenGroups = 2;
/** `SID_AND_ATTRIBUTES`: an address, flags at byte 8, padding. A count with padding goes before those of groups. */
const entryBytes = 16;
const groupEnabled = 4;
const groupForDenyOnly = 0x10;
/** Windows lets a token have 1024 groups, of at most 68 bytes each. */
const tokenBytes = 1024 * (entryBytes + 68) + entryBytes;

const localSystem = "S-1-5-18";
const administrators = "S-1-5-32-544";

/** The account that a process runs as. */
export interface Account {
  /** As in `S-1-5-18`. */
  readonly sid: string;
  /** `DOMAIN\name`; empty where Windows knows none. */
  readonly name: string;
  /** LocalSystem, or a member of the administrators with those rights enabled in its token. */
  readonly isAdministrator: boolean;
}

/**
 * @returns `undefined` where there is no such process (any more)
 * @throws {Error} naming the call of Windows that failed, and its error
 */
export function accountOfProcess(pid: number): Account | undefined {
  const k = dlopen(systemLibrary("kernel32.dll"), symbols).symbols;
  const a = dlopen(systemLibrary("advapi32.dll"), tokenSymbols).symbols;
  const failure = (call: string): Error => new Error(`${call} answers error ${k.GetLastError()}`);
  const handles: (number | bigint)[] = [];
  try {
    const process = k.OpenProcess(queryProcess, 0, pid);
    if (process === 0 && k.GetLastError() === winError.invalidParameter) return undefined;
    if (process === 0) throw failure("OpenProcess");
    handles.push(process);
    const out = new BigUint64Array(1);
    if (a.OpenProcessToken(process, queryToken, ptr(out)) === 0) throw failure("OpenProcessToken");
    const token = Number(out[0]);
    handles.push(token);
    const told = (what: number): TokenView => {
      const bytes = new Uint8Array(new ArrayBuffer(tokenBytes));
      const length = new Uint32Array(1);
      const got = a.GetTokenInformation(token, what, ptr(bytes), tokenBytes, ptr(length));
      if (got === 0) throw failure("GetTokenInformation");
      return new TokenView(bytes, ptr(bytes));
    };
    const user = told(tokenUser).sidAt(0);
    const sid = sidText(user);
    const name = nameOf(user, a.LookupAccountSidW);
    return { sid, name, isAdministrator: sid === localSystem || told(tokenGroups).hasGroup(administrators) };
  } finally {
    for (const handle of handles) k.CloseHandle(handle);
  }
}

/** The output of GetTokenInformation: entries whose addresses point into the same bytes, behind the entries. */
class TokenView {
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  readonly #address: bigint;

  constructor(bytes: Uint8Array, address: number) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer);
    this.#address = BigInt(address);
  }

  /** The SID that the entry at a byte points to. */
  sidAt(entry: number): Uint8Array {
    const at = Number(this.#view.getBigUint64(entry, true) - this.#address);
    return this.#bytes.subarray(at, at + sidBytes(this.#view.getUint8(at + 1)));
  }

  hasGroup(wanted: string): boolean {
    const count = this.#view.getUint32(0, true);
    for (let i = 0; i < count; i++) {
      const entry = 8 + i * entryBytes;
      if (sidText(this.sidAt(entry)) !== wanted) continue;
      const attributes = this.#view.getUint32(entry + 8, true);
      return (attributes & groupEnabled) !== 0 && (attributes & groupForDenyOnly) === 0;
    }
    return false;
  }
}

const sidBytes = (parts: number): number => 8 + 4 * parts;

/** `SID`: revision, number of parts, an authority of 6 bytes with the highest first, parts of 4 with the lowest first. */
function sidText(sid: Uint8Array): string {
  const view = new DataView(sid.buffer, sid.byteOffset, sid.byteLength);
  const authority = view.getUint16(2) * 2 ** 32 + view.getUint32(4);
  let text = `S-${view.getUint8(0)}-${authority}`;
  for (let at = sidBytes(0); at < sid.byteLength; at += 4) text += `-${view.getUint32(at, true)}`;
  return text;
}

/** Names of accounts and domains are shorter than this, also together. */
const nameUnits = 256;

type LookUp = (
  system: null,
  sid: Pointer,
  name: Pointer,
  nameUnits: Pointer,
  domain: Pointer,
  domainUnits: Pointer,
  use: Pointer,
) => number;

function nameOf(sid: Uint8Array, lookUp: LookUp): string {
  // A copy that does not move in memory.
  const asked = new Uint8Array(new ArrayBuffer(sid.length));
  asked.set(sid);
  const [name, domain] = [wide(" ".repeat(nameUnits)), wide(" ".repeat(nameUnits))];
  const [nameLength, domainLength] = [new Uint32Array([nameUnits]), new Uint32Array([nameUnits])];
  const use = new Uint32Array(1);
  const found = lookUp(null, ptr(asked), ptr(name), ptr(nameLength), ptr(domain), ptr(domainLength), ptr(use));
  if (found === 0) return "";
  const text = (units: Uint16Array): string => String.fromCharCode(...units.subarray(0, units.indexOf(0)));
  return `${text(domain)}\\${text(name)}`;
}
