/** Where a server listens. */
export interface ListenAddress {
  /** A name or an address, without brackets. */
  readonly host: string;
  readonly port: number;
}

export const listenRule = "ADDRESS:PORT or [ADDRESS]:PORT";

export function parseListen(text: string): ListenAddress | undefined {
  const [, bracketed, plain, digits = ""] = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]]+)):(\d{1,5})$/.exec(text) ?? [];
  const host = bracketed ?? plain;
  const port = Number(digits);
  return host === undefined || port > 65_535 ? undefined : { host, port };
}
