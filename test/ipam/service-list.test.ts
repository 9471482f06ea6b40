import { afterEach, beforeEach, expect, test } from "vitest";
import { SqliteStore } from "../../ipam/store/sqlite-store.ts";
import { ipOf } from "../../shared/net/ip.ts";
import { describeWith } from "../support/requires.ts";
import { attachmentOf, ServiceHome, serviceConf } from "./service-process.ts";

const leases = 100_000;
/** More than a runtime's heap wanders by, and half of what all of them at once would take; with 400,000 it is the same. */
const maxMb = 80;
/** 10.128.0.1 and what follows. */
const addressOf = (i: number) => ipOf(4, BigInt(0x0a800001 + i));

let home: ServiceHome;
beforeEach(() => {
  home = new ServiceHome();
});
afterEach(() => home[Symbol.asyncDispose]());

describeWith(`a list of ${leases} leases`, ["linux"], () => {
  test("comes whole, takes the server little memory, and lets others be served meanwhile", async () => {
    {
      using store = await SqliteStore.open(`${home.dataDir}/leases.db`, home.dataDir);
      store.transaction((): void => {
        for (let i = 0; i < leases; i++)
          store.put({
            owner: { network: "big", sandboxId: `${"0123456789abcdef".repeat(3)}${i}`, ifname: "eth0" },
            rangeSet: 0,
            address: { ip: addressOf(i), prefix: 9 },
            state: "allocated",
            pod: { namespace: "default", name: `pod-${i}`, uid: "01234567-89ab-cdef-0123-456789abcdef" },
            bootId: "",
            generation: i + 1,
            allocatedAtMs: 1,
          });
        store.setMark("generation", String(leases));
      });
    }
    const service = await home.start();
    const client = home.client();
    const before = service.residentMb();

    const slow = client.list("big");
    const first = (await slow.next()).value;
    expect(first?.generation).toBe(1);
    // Nobody reads on; who asks for something else is served.
    expect((await home.client().allocate({ ...attachmentOf("a"), configuration: serviceConf })).leases).toHaveLength(1);
    expect(service.residentMb() - before).toBeLessThan(maxMb);
    for (let i = 1; i < leases; i++) {
      const { value } = await slow.next();
      if (value?.generation !== i + 1) expect(value?.generation).toBe(i + 1);
    }
    expect((await slow.next()).done).toBe(true);
    expect(service.residentMb() - before).toBeLessThan(maxMb);
  });
});
