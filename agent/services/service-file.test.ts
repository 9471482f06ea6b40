import { mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { createLogger } from "../../shared/log.ts";
import { parseCidr, parseIp } from "../../shared/net/ip.ts";
import { keysOf } from "../../shared/schema/mod.ts";
import { eventually } from "../../test/support/eventually.ts";
import { followServiceFile, readServices, serviceFileSchema } from "./service-file.ts";

const ip = (text: string) => parseIp(text)!;
const podSubnets = [parseCidr("10.10.1.0/24")!];

const text = `services:
  - name: default/web:http
    clusterIp: 10.96.0.10
    protocol: tcp
    port: 80
    affinitySeconds: 10800
    endpoints:
      - { ip: 10.10.1.2, port: 8080 }
      - { ip: 10.10.2.2, port: 8080, weight: 300 }
  - { name: "kube-system/dns:dns-v6", clusterIp: "fd00:96::a", protocol: udp, port: 53, endpoints: [] }
`;

const problemsOf = (given: string): readonly string[] => {
  const read = readServices(given, "services.yaml", podSubnets);
  return read.t === "wrong" ? read.problems : [];
};

test("a file of services is read, YAML and JSON alike", () => {
  const none = { externalIps: [], ingressIps: [], keepsClient: false, preservesDestination: false };
  const endpoints = [
    { ip: ip("10.10.1.2"), port: 8080, weight: 100, isLocal: true },
    { ip: ip("10.10.2.2"), port: 8080, weight: 300, isLocal: false },
  ];
  const web = { key: "default/web:http", clusterIp: ip("10.96.0.10"), protocol: "tcp", port: 80 };
  const dns = { key: "kube-system/dns:dns-v6", clusterIp: ip("fd00:96::a"), protocol: "udp", port: 53 };
  const services = [
    { ...web, ...none, affinitySeconds: 10800, internal: endpoints, external: endpoints, cluster: endpoints },
    { ...dns, ...none, internal: [], external: [], cluster: [] },
  ];
  const expected = { t: "ok", value: new Map(services.map((service) => [service.key, service])) };
  expect(readServices(text, "a", podSubnets)).toEqual(expected);
  expect(readServices(JSON.stringify(Bun.YAML.parse(text)), "a", podSubnets)).toEqual(expected);
});

test("the sample is in order, and has every key", () => {
  const sample = readFileSync(new URL("../../conf/services.yaml", import.meta.url), "utf8");
  expect(readServices(sample, "conf/services.yaml", podSubnets).t).toBe("ok");
  for (const key of keysOf(serviceFileSchema)) expect(sample).toMatch(new RegExp(`\\b${key.split(".").at(-1)}:`));
});

const one = (rest: string, endpoints = "[]"): string =>
  `services: [ { name: a, clusterIp: 10.96.0.1, protocol: tcp, port: 1, endpoints: ${endpoints} }${rest} ]`;

describe("what is wrong is named with its place", () => {
  test.each([
    ["", '"services" is missing'],
    ["services: 5", 'services.yaml:1:11: "services" is 5, wanted a list of 0 to 10000 entries'],
    ["services:\n  - { name: a", "services.yaml:"],
    [text.replace("10.96.0.10", "10.96.0"), 'services.yaml:3:16: "services[0].clusterIp" is "10.96.0", wanted an addr'],
    [text.replace("10.96.0.10", "224.0.0.1"), 'services.yaml:3:16: "services[0].clusterIp" is "224.0.0.1", wanted an'],
    [text.replace("fd00:96::a", "ff02::1"), '"services[1].clusterIp" is "ff02::1", wanted an address'],
    [text.replace("tcp", "icmp"), 'services.yaml:4:15: "services[0].protocol" is "icmp", wanted one of "tcp", "udp"'],
    [text.replace("port: 80\n", "port: 65536\n"), '"services[0].port" is 65536, wanted a whole number from 1 to 65535'],
    [text.replace("weight: 300", "weight: 0"), '"services[0].endpoints[1].weight" is 0, wanted a whole number from 1'],
    [text.replace("10800", "86400"), '"services[0].affinitySeconds" is 86400, wanted a whole number from 1 to 65535'],
    [text.replace("10.10.2.2", "fd00::2"), '"services[0].endpoints[1].ip" is "fd00::2", wanted IPv4 as "clusterIp"'],
    [text.replace("10.10.2.2", "10.10.1.2"), '"services[0].endpoints[1]" is "10.10.1.2" port 8080 for the second time'],
    [text.replace("affinitySeconds", "sticky"), '"services[0].sticky" is an unknown key'],
    [one(", { name: a, clusterIp: 10.96.0.2, protocol: tcp, port: 1, endpoints: [] }"), '"a" for the second time'],
    [one(", { name: b, clusterIp: 10.96.0.1, protocol: tcp, port: 1, endpoints: [] }"), 'that of "a"'],
    [one("").replace("name: a", 'name: "a b"'), '"services[0].name" is "a b"'],
  ])("%#", (given, problem) => {
    expect(problemsOf(given).join("\n")).toContain(problem);
    const json = Bun.YAML.parse(given.includes("- { name: a") ? "x: 1" : given);
    // As JSON it is refused just the same.
    expect(readServices(JSON.stringify(json ?? {}), "a", podSubnets).t).toBe("wrong");
  });
});

test("what unfolds without end, or would keep the agent for long, is refused", () => {
  const endpoints = Array.from({ length: 10 }, (_, i) => `{ ip: 10.1.${i >> 8}.${i & 255}, port: 1 }`).join(", ");
  const services = Array.from({ length: 150 }, (_, i) => {
    const address = `10.97.${i >> 8}.${i & 255}`;
    return `  - { name: s${i}, clusterIp: ${address}, protocol: tcp, port: 1, endpoints: ${i === 0 ? `&e [${endpoints}]` : "*e"} }\n`;
  });
  expect(problemsOf(`services:\n${services.join("")}`).join()).toContain(
    '"services[101].endpoints" is alias 101, wanted 100 at the most',
  );
  const long = `services: []\n#${"x".repeat(1024 * 1024)}`;
  expect(problemsOf(long).join()).toContain("wanted JSON in order where there is more than 1 MiB");
});

test("a file is followed, and what is as before stays the same object", async () => {
  const directory = mkdtempSync(join(tmpdir(), "pipette-services-"));
  using _ = { [Symbol.dispose]: () => rmSync(directory, { recursive: true }) };
  const path = join(directory, "services.yaml");
  const write = (given: string): void => {
    writeFileSync(`${path}.new`, given, { mode: 0o600 });
    renameSync(`${path}.new`, path);
  };
  const lines: string[] = [];
  const logger = createLogger("error", (line) => void lines.push(line));
  write(text);
  await using source = followServiceFile({ path, podSubnets, logger, intervalMs: 10 });
  const [web, dns] = ["default/web:http", "kube-system/dns:dns-v6"];
  const before = await eventually(() => source.current, "the first state");
  write(text.replace("port: 53", "port: 54"));
  const after = await eventually(() => (source.current === before ? undefined : source.current), "the second state");
  expect([after.get(web) === before.get(web), after.get(dns) === before.get(dns)]).toEqual([true, false]);
  write("services: 5\n");
  await eventually(() => source.fault !== undefined, "the fault");
  expect([source.current === after, lines.length]).toEqual([true, 1]);
});
