import { chmodSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createLogger } from "../../shared/log.ts";
import { nodeKeys, nodePair } from "../../test/fakes/node-pairs.ts";
import { eventually } from "../../test/support/eventually.ts";
import { scratchDir } from "../../test/support/scratch-dir.ts";
import { FileCertificates } from "./file-certificates.ts";
import type { HeldFiles } from "./held-certificate.ts";
import type { Pair } from "./pair-check.ts";
import { PairStore } from "./pair-store.ts";

let scratch: ReturnType<typeof scratchDir>;
const open: FileCertificates[] = [];
beforeEach(() => {
  scratch = scratchDir();
  mkdirSync(join(scratch.path, "given"));
});
afterEach(async () => {
  for (const one of open.splice(0)) await one[Symbol.asyncDispose]();
  scratch[Symbol.dispose]();
});

const at = (name: keyof Pair): string => join(scratch.path, "given", name);
const give = (pair: Partial<Pair>): void => {
  for (const [name, text] of Object.entries(pair)) writeFileSync(at(name as keyof Pair), text, { mode: 0o600 });
};

function start(): { certificates: FileCertificates; changes: HeldFiles[] } {
  const certificates = new FileCertificates(
    {
      ...{ from: "files", certificate: at("certificate"), privateKey: at("privateKey"), authorities: at("ca") },
      trustDirectory: join(scratch.path, "cacerts"),
    },
    {
      ...{ node: "node-a", store: new PairStore(join(scratch.path, "ipsec")), everyMs: 10 },
      ...{ trustDirectory: join(scratch.path, "cacerts"), logger: createLogger("error", () => undefined) },
      reread: async () => undefined,
    },
  );
  open.push(certificates);
  const changes: HeldFiles[] = [];
  certificates.onChange = (files) => {
    if (files !== undefined) changes.push(files);
  };
  return { certificates, changes };
}

describe("a certificate that is given", () => {
  test("is there at once, and another one once it is whole", async () => {
    give(nodePair());
    const { certificates, changes } = start();
    expect([certificates.current() === undefined, certificates.problem()]).toEqual([false, undefined]);
    const next = nodePair({ privateKey: nodeKeys[1] ?? "" });
    give({ certificate: next.certificate });
    await eventually(() => certificates.problem()?.includes("private key is not the certificate's"), "the reason");
    expect([changes.length, certificates.current() === undefined]).toEqual([1, false]);
    give({ privateKey: next.privateKey });
    await eventually(() => changes.length === 2, "the next one");
    expect(readFileSync(changes[1]?.certificate ?? "", "utf8")).toBe(next.certificate);
    expect(certificates.problem()).toBeUndefined();
  });

  test("may come later, and goes on where its files are taken away", async () => {
    const { certificates, changes } = start();
    expect(certificates.current()).toBeUndefined();
    expect(certificates.problem()).toMatch(/no certificate for IPsec: .*no such file/i);
    give(nodePair());
    await eventually(() => changes.length === 1, "one");
    renameSync(at("privateKey"), `${at("privateKey")}.away`);
    await eventually(() => certificates.problem()?.includes("stays: "), "the reason");
    expect(certificates.current()).toBeDefined();
  });

  test.each<[string, () => void, RegExp]>([
    [
      "a key that others can read",
      () => chmodSync(at("privateKey"), 0o640),
      /"[^"]*privateKey" can be read by others \(mode 640\), wanted mode 600/,
    ],
    [
      "a certificate that others can write",
      () => chmodSync(at("certificate"), 0o666),
      /certificate" can be written by others/,
    ],
    ["authorities that others can write", () => chmodSync(at("ca"), 0o622), /ca" can be written by others/],
    ["no authorities", () => rmSync(at("ca")), /ca" cannot be read/],
    ["a file that is too long", () => writeFileSync(at("ca"), "x".repeat(300_000)), /longer than/],
    ["another node's", () => give(nodePair({ node: "node-b" })), /wanted "CN=node-a"/],
    ["one that has ended", () => give(nodePair({ from: -2, until: -1 })), /has ended at/],
  ])("is refused with %s", (_, spoil, is) => {
    give(nodePair());
    spoil();
    const { certificates } = start();
    expect([certificates.current(), certificates.problem()]).toEqual([undefined, expect.stringMatching(is)]);
  });
});
