import { describe, expect, test } from "vitest";
import { Fields } from "../../shared/schema/json-fields.ts";
import { portMappingsOf } from "./port-mappings.ts";

const read = (portMappings: unknown) => portMappingsOf(new Fields({ runtimeConfig: { portMappings } }));

describe("port mappings", () => {
  test("are read in the spelling of each runtime, those without a host port left out", () => {
    expect(
      read([
        { HostPort: 8080, ContainerPort: 80, Protocol: "TCP", HostIP: "" },
        { hostPort: 53, containerPort: 5353, protocol: "udp", hostIP: "0.0.0.0" },
        { hostPort: 0, containerPort: 9090 },
        { hostPort: 443, containerPort: 443 },
        { hostPort: 65_535, containerPort: 1, protocol: "" },
      ]),
    ).toEqual([
      { hostPort: 8080, containerPort: 80, protocol: "tcp" },
      { hostPort: 53, containerPort: 5353, protocol: "udp" },
      { hostPort: 443, containerPort: 443, protocol: "tcp" },
      { hostPort: 65_535, containerPort: 1, protocol: "tcp" },
    ]);
    expect(portMappingsOf(new Fields({}))).toEqual([]);
  });

  test.each([
    [{ hostPort: 70_000, containerPort: 80 }, '"runtimeConfig.portMappings[0].hostPort" is 70000'],
    [{ hostPort: 65_536, containerPort: 80 }, 'portMappings[0].hostPort" is 65536'],
    [{ hostPort: 80, containerPort: 0 }, 'portMappings[0].containerPort" is 0'],
    [{ hostPort: 80, containerPort: 65_536 }, 'portMappings[0].containerPort" is 65536'],
    [{ hostPort: 80 }, '"runtimeConfig.portMappings[0].containerPort" is missing'],
    [{ hostPort: 80, containerPort: 80, protocol: "sctp" }, 'protocol" is "sctp", wanted "tcp" or "udp"'],
    [{ hostPort: 80, containerPort: 80, hostIP: "10.0.0.1" }, 'hostIP" is "10.0.0.1", wanted no address or 0.0.0.0'],
  ])("%j is refused", (entry, part) => {
    expect(() => read([entry])).toThrow(expect.objectContaining({ code: 7, message: expect.stringContaining(part) }));
  });

  test("beyond any number that makes sense are refused", () => {
    expect(read(Array(256).fill({ hostPort: 1, containerPort: 1 }))).toHaveLength(256);
    expect(() => read(Array(257).fill({}))).toThrow('"runtimeConfig.portMappings" is 257 entries long, wanted 256');
  });
});
