import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { eventually } from "../../test/support/eventually.ts";
import { scratchDir } from "../../test/support/scratch-dir.ts";
import { createLogger } from "../log.ts";
import { FollowedCertificates } from "./followed-certificates.ts";
import { GivenCertificates } from "./given-certificates.ts";
import { renewed } from "./renewal.ts";
import type { Serving } from "./serving.ts";

const wanted = { authority: "ca", names: ["c.ns.svc"] };

describe("certificates that are given", () => {
  const give = (directory: string, { cert, key, ca }: Serving): void => {
    mkdirSync(directory, { recursive: true });
    for (const [name, text] of Object.entries({ "tls.crt": cert, "tls.key": key, "ca.crt": ca }))
      writeFileSync(join(directory, name), text);
  };
  const now = new Date();

  test.each<[string, Partial<Serving>, RegExp]>([
    ["no certificate", { cert: "x" }, /tls\.crt is no certificate/],
    ["another one's key", { key: renewed(undefined, wanted, now).key }, /tls\.key is not the key/],
    ["no authority", { ca: "" }, /ca\.crt is no certificate/],
    ["one that has ended", renewed(undefined, wanted, new Date(now.getTime() - 200 * 24 * 60 * 60_000)), /has ended/],
  ])("are refused with %s", async (_, wrong, is) => {
    using directory = scratchDir();
    give(directory.path, { ...renewed(undefined, wanted, now), ...wrong });
    await expect(new GivenCertificates(directory.path).current()).rejects.toThrow(is);
  });

  test("are followed: the next ones are shown once they are whole, and published before", async () => {
    using directory = scratchDir();
    const [first, second] = [renewed(undefined, wanted, now), renewed(undefined, wanted, now)];
    const source = new GivenCertificates(join(directory.path, "later"));
    const told: string[] = [];
    const starting = FollowedCertificates.start(source, {
      logger: createLogger("error", () => undefined),
      publish: async (ca) => void told.push(ca === first.ca ? "first" : "second"),
      signal: new AbortController().signal,
      everyMs: 10,
    });
    // Waits for them.
    await Bun.sleep(20);
    give(join(directory.path, "later"), first);
    await using followed = await starting;
    expect([followed.serving, told]).toEqual([{ cert: first.cert, key: first.key, ca: first.ca }, ["first"]]);
    followed.onReplaced = ({ cert }) => void told.push(cert === second.cert ? "shown" : "wrong");
    writeFileSync(join(directory.path, "later", "tls.key"), second.key);
    await Bun.sleep(50);
    give(join(directory.path, "later"), second);
    await eventually(() => told.includes("shown"), "the second one");
    expect(told.filter((each) => each !== "first").slice(0, 2)).toEqual(["second", "shown"]);
  });
});
