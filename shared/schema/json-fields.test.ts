import { describe, expect, test } from "vitest";
import { CniError } from "../errors.ts";
import { Fields } from "./json-fields.ts";

const fail = (act: () => unknown): CniError => {
  try {
    act();
  } catch (caught) {
    if (caught instanceof CniError) return caught;
    throw caught;
  }
  throw new Error("nothing was thrown");
};

describe("Fields", () => {
  test("matches keys in any case, an exact match first", () => {
    expect(Fields.parse('{"HostPort":1}').integer("hostPort", 0, 9)).toBe(1);
    expect(Fields.parse('{"HOSTPORT":1,"hostPort":2}').integer("hostPort", 0, 9)).toBe(2);
  });

  test("takes null for absent", () => {
    const fields = Fields.parse('{"a":null}');
    expect(fields.string("a")).toBeUndefined();
    expect(fields.has("a")).toBe(false);
  });

  test.each([
    ["", "it is empty"],
    ["{", "wanted one JSON object"],
    ["[]", "it is an array"],
    ["null", "it is null"],
    ['{"a":1} {"b":2}', "wanted one JSON object"],
  ])("refuses the document %j with code 6", (text, part) => {
    const error = fail(() => Fields.parse(text));
    expect(error.code).toBe(6);
    expect(error.message).toContain(part);
  });

  test("names path, value and what was wanted", () => {
    const fields = Fields.parse('{"ipam":{"ranges":[[],{"subnet":5}],"mtu":70000}}').object("ipam")!;
    expect(fail(() => fields.objects("ranges")).message).toBe(
      'Cannot read the network configuration: "ipam.ranges[0]" is [], wanted an object',
    );
    expect(fail(() => fields.integer("mtu", 0, 65535)).message).toBe(
      'Cannot read the network configuration: "ipam.mtu" is 70000, wanted a whole number from 0 to 65535',
    );
  });

  test("does not reach into the prototype", () => {
    expect(Fields.parse("{}").get("constructor")).toBeUndefined();
    expect(Fields.parse("{}").get("__proto__")).toBeUndefined();
  });
});
