import { join, resolve } from "node:path";
import { expect, inject } from "vitest";
import { compileExecutable } from "../../../build/bundle.ts";
import type { HnsService } from "../../fakes/hns/hns-service.ts";
import { madeOnce } from "../../support/made-once.ts";

/** Compiles the driver as the agent is compiled, once per run. @returns its path */
export async function compileDriver(): Promise<string> {
  const outfile = join(inject("wineDirectory"), "hcn-driver.exe");
  const entry = resolve(import.meta.dirname, "../programs/hcn-driver.ts");
  await madeOnce(outfile, (making) => compileExecutable({ entry, base: "bun-windows-x64", outfile: making }));
  return outfile;
}

/** Waits until no object is open any more, as far as threads that were given up still have to close theirs. */
export async function allClosed(hns: HnsService, withinMs = 20_000): Promise<void> {
  const until = performance.now() + withinMs;
  while (hns.handles.list().length > 0 && performance.now() < until) await Bun.sleep(10);
  expect(hns.handles.list()).toEqual([]);
  const opened = hns.calls.filter(({ fn, hresult }) => hresult === 0 && /^Hcn(Open|Create)/.test(fn)).length;
  const closed = hns.calls.filter(({ fn, hresult }) => hresult === 0 && fn.startsWith("HcnClose")).length;
  expect(closed).toBe(opened);
}

/** Documents that HNS takes. */
export const network = (name = "pipette"): Record<string, unknown> => ({
  Name: name,
  Type: "Transparent",
  Policies: [{ Type: "NetAdapterName", Settings: { NetworkAdapterName: "Ethernet" } }],
  Ipams: [
    {
      Type: "Static",
      Subnets: [
        { IpAddressPrefix: "10.10.1.0/24", Routes: [{ NextHop: "10.10.1.1", DestinationPrefix: "0.0.0.0/0" }] },
      ],
    },
  ],
});

export const endpoint = (address: string, name = "web"): Record<string, unknown> => ({
  Name: name,
  IpConfigurations: [{ IpAddress: address, PrefixLength: 24 }],
  Routes: [{ NextHop: "10.10.1.1", DestinationPrefix: "0.0.0.0/0" }],
});
