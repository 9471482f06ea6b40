import { openLibrary } from "./native.linux.ts";

const symbols = { GetTickCount64: { args: [], returns: "u64" } } as const;

let opened: { readonly calls: ReturnType<typeof openLibrary<typeof symbols>> } | undefined;

/** As `uptimeMs`, in steps of some 16 ms. */
export function uptimeNow(): number | undefined {
  // Every process has loaded this library from its start, so its bare name cannot load another file.
  opened ??= { calls: openLibrary("kernel32.dll", symbols) };
  const { calls } = opened;
  return calls === undefined ? undefined : Number(calls.GetTickCount64());
}
