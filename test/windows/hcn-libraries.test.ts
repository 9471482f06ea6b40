import { cpSync, readFileSync, renameSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { allClosed, compileDriver } from "./hcn/driver.ts";
import { RemoteHcn } from "./hcn/remote-hcn.ts";
import { describeWine } from "./wine/describe-wine.ts";

describeWine("the libraries of HNS", (wine) => {
  let driver = "";
  let hcn: RemoteHcn;
  beforeAll(async () => {
    driver = await compileDriver();
  });
  beforeEach(async () => {
    wine.stubs.hns.reset();
    hcn = await RemoteHcn.start(wine.prefix, driver);
  });
  afterEach(() => hcn[Symbol.asyncDispose]());

  const inSystem = (name: string): string => wine.prefix.unixPath(`C:\\windows\\system32\\${name}`);

  /** Takes a library of Windows away until the end of the test. */
  function without(name: string): Disposable {
    const aside = `${inSystem(name)}.aside`;
    renameSync(inSystem(name), aside);
    return {
      [Symbol.dispose]: () => {
        rmSync(inSystem(name), { force: true });
        renameSync(aside, inSystem(name));
      },
    };
  }

  test("one that is missing is named by its whole path, and one of its name beside the program is left alone", async () => {
    const planted = join(dirname(driver), "computenetwork.dll");
    cpSync(inSystem("computenetwork.dll"), planted);
    try {
      using _ = without("computenetwork.dll");
      const error = await hcn.refused("networks");
      expect(error).toMatchObject({ name: "HcnError", hresult: 0, call: "", timedOut: false });
      expect(error.message).toMatch(
        /^Cannot list the networks: "C:\\windows\\System32\\computenetwork.dll" cannot be used \(.*126.*\), wanted the feature Containers/i,
      );
      expect(wine.stubs.hns.calls).toEqual([]);
    } finally {
      rmSync(planted);
    }
    // Nothing has to be started anew.
    expect(await hcn.call("networks")).toEqual([]);
  });

  test("one without the functions is named, with the first that it lacks", async () => {
    using _ = without("computenetwork.dll");
    cpSync(inSystem("bcryptprimitives.dll"), inSystem("computenetwork.dll"));
    expect((await hcn.refused("networks")).message).toMatch(
      /computenetwork\.dll" cannot be used \(.*Hcn\w+Network.*\)/,
    );
  });

  test("V2 works without V1, which is opened at its first use", async () => {
    using _ = without("vmcompute.dll");
    expect(await hcn.call("networks")).toEqual([]);
    expect((await hcn.refused("hnsCall", "GET", "/networks/")).message).toContain('System32\\vmcompute.dll" cannot');
  });

  test("300 listings of 200 KB leave the memory as it was", async () => {
    const { hns } = wine.stubs;
    const id = "0A1B2C3D-4E5F-6071-8293-A4B5C6D7E8F9";
    hns.store.endpoints.set(id, { ID: id, Name: "x".repeat(200_000) });
    await hcn.listEndpoints(100);
    const before = residentMiB(hcn.program.pid);
    expect(await hcn.listEndpoints(300)).toBe(1);
    const after = residentMiB(hcn.program.pid);
    // Not freed, the texts alone would be 120 MiB.
    expect(after - before).toBeLessThan(40);
    await allClosed(hns);
    expect(hns.calls.at(-1)?.strings).toBe(0);
  });
});

const residentMiB = (pid: number): number =>
  Number(/^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) / 1024;
