import { describe, expect, test } from "vitest";
import {
  containerKind,
  containerKindLeniently,
  containerKindStrictly,
  sandboxIdOf,
  zeroGuid,
} from "./container-kind.ts";

const guid = "a5b2c3d4-0011-2233-4455-66778899aabb";
const id = "0f".repeat(32);

describe("CNI_NETNS on Windows", () => {
  test.each([
    ["none", { t: "sandbox" }],
    [guid, { t: "sandbox", namespace: guid }],
    [guid.toUpperCase(), { t: "sandbox", namespace: guid }],
    [zeroGuid, { t: "sandbox", namespace: zeroGuid }],
    [`container:${id}`, { t: "workload", sandboxId: id }],
    ["container:pause_1.a-b", { t: "workload", sandboxId: "pause_1.a-b" }],
  ])("%s", (netns, kind) => {
    expect(containerKind(netns)).toEqual(kind);
  });

  test.each([
    ["", '""'],
    [" ", '" "'],
    ["None", '"None"'],
    [" none", '" none"'],
    ["container", '"container"'],
    ["container:", "sandbox id that is empty"],
    ["container: ", 'sandbox id that is " "'],
    ["container:a b", 'sandbox id that is "a b"'],
    ["container:a:b", 'sandbox id that is "a:b"'],
    ["container::a", 'sandbox id that is ":a"'],
    ["Container:a", '"Container:a"'],
    ["host:a", '"host:a"'],
    ["container:../a", 'sandbox id that is "../a"'],
    [`container:${"a".repeat(129)}`, "129 characters long"],
    ["/var/run/netns/a", '"/var/run/netns/a"'],
    [`{${guid}}`, `"{${guid}}"`],
    [`${guid} `, `"${guid} "`],
    [guid.slice(1), `"${guid.slice(1)}"`],
    [guid.replaceAll("-", ""), "wanted"],
    [guid.replace("a", "g"), "wanted"],
    [guid.replace("-", "0"), "wanted"],
    [`${guid.slice(0, 35)}\0`, "wanted"],
  ])("%j is refused with code 4, its name and its value", (netns, part) => {
    const call = () => containerKind(netns);
    expect(call).toThrow(expect.objectContaining({ code: 4 }));
    expect(call).toThrow("Cannot read the environment: CNI_NETNS is ");
    expect(call).toThrow(part);
  });
});

test("a DEL takes what cannot be read for its own container", () => {
  for (const netns of ["", "container:", "a:b:c", "/var/run/netns/a", "none"])
    expect(containerKindLeniently(netns)).toEqual({ t: "sandbox" });
  expect(containerKindLeniently(zeroGuid)).toEqual({ t: "sandbox", namespace: zeroGuid });
  expect(containerKindLeniently(`container:${id}`)).toEqual({ t: "workload", sandboxId: id });
});

test("an ADD takes the GUID of zeros for no namespace", () => {
  expect(() => containerKindStrictly(zeroGuid)).toThrow(expect.objectContaining({ code: 4 }));
  expect(containerKindStrictly(guid)).toEqual({ t: "sandbox", namespace: guid });
  expect(containerKindStrictly("none")).toEqual({ t: "sandbox" });
});

test("the lease is the sandbox's", () => {
  expect(sandboxIdOf("own", containerKind("none"))).toBe("own");
  expect(sandboxIdOf("own", containerKind(guid))).toBe("own");
  expect(sandboxIdOf("own", containerKind("container:theirs"))).toBe("theirs");
});
