import { describe, expect, test } from "vitest";
import { formatIp, parseIp } from "../../shared/net/ip.ts";
import type { NamedPort, Port } from "../../shared/policy/mod.ts";
import type { Member } from "./members.ts";
import { PodGroup, resolve } from "./pod-group.ts";

/** @param text "TCP/web:80" */
function named(text: string): NamedPort {
  const [protocol = "", name = "", port = ""] = text.split(/[/:]/);
  return { protocol, name, port: Number(port) } as NamedPort;
}
/** @param text "TCP/web" */
function wanted(text: string): Port {
  const [protocol = "", port = ""] = text.split("/");
  return { protocol, port } as Port;
}
const member = (pod: string, ips: readonly string[], ...ports: readonly string[]): Member => ({
  key: [pod, ...ips].join(" "),
  pod,
  ips: ips.map((text) => parseIp(text)!),
  ports: ports.map(named),
});
const addresses = (group: PodGroup): readonly string[] => group.set.ips.map(formatIp);

describe("names of ports", () => {
  const pod = ["TCP/web:80", "TCP/web:8080", "UDP/web:53", "TCP/none:0", "TCP/last:65535", "TCP/far:65536"].map(named);
  test.each([
    [["TCP/web"], "TCP/80 TCP/8080"],
    [["UDP/web"], "UDP/53"],
    [["UDP/web", "TCP/web", "TCP/web"], "TCP/80 TCP/8080 UDP/53"],
    [["TCP/last"], "TCP/65535"],
    [["TCP/none", "TCP/far", "TCP/absent", "SCTP/web"], ""],
  ])("%j are the ports %j of a pod", (names, text) => {
    const resolved = resolve(names.map(wanted), pod);
    expect(resolved.text).toBe(text);
    expect(resolved.ports.map(({ protocol, first }) => `${protocol}/${first}`).join(" ")).toBe(text);
    expect(resolve(names.map(wanted), pod.toReversed())).toEqual(resolved);
  });
});

describe("the addresses of a group", () => {
  const [a, b] = [member("x/a", ["10.0.0.1", "fd00::1"]), member("x/b", ["10.0.0.2"])];

  test("are each there once, and of both families, however alike their numbers are", () => {
    const all = [a, b, member("x/c", ["10.0.0.2"]), member("x/d", ["::a00:1"])];
    expect(addresses(new PodGroup("g", all))).toEqual(["10.0.0.1", "fd00::1", "10.0.0.2", "::a00:1"]);
  });

  test("are the same object for as long as they are the same", () => {
    const group = new PodGroup("g", [a, b]);
    const { set } = group;
    group.replace([b, a]);
    group.change([member("x/c", ["10.0.0.2"])], []);
    expect(group.set).toBe(set);
    group.change([member("x/e", ["10.0.0.3"])], [a]);
    expect(addresses(group)).toEqual(["10.0.0.2", "10.0.0.3"]);
    group.replace([a]);
    expect([addresses(group), set.ips.map(formatIp)]).toEqual([
      ["10.0.0.1", "fd00::1"],
      ["10.0.0.1", "fd00::1", "10.0.0.2"],
    ]);
  });

  test("change by additions first, and not at all where somebody leaves who was not there", () => {
    const group = new PodGroup("g", [a]);
    expect(() => group.change([b], [member("x/c", ["10.0.0.9"])])).toThrow(
      '"x/c 10.0.0.9" leaves the group "g", in which it is not',
    );
    expect([...group.members.keys()]).toEqual([a.key]);
    group.change([b], [b]);
    expect([...group.members.keys()]).toEqual([a.key]);
  });
});

describe("the parts of a group", () => {
  const [a, b, c] = [
    member("x/a", ["10.0.0.1"], "TCP/web:80"),
    member("x/b", ["10.0.0.2"], "TCP/web:80"),
    member("x/c", ["10.0.0.3"], "TCP/web:8080"),
  ];
  const none = member("x/n", ["10.0.0.9"]);
  const web = [wanted("TCP/web")];
  const told = (group: PodGroup, names = web) =>
    group.parts(names).map(({ resolved, set }) => `${resolved.text}: ${set.ips.map(formatIp).join(" ")}`);

  test("are the pods at which names stand for the same; where they stand for nothing there is none", () => {
    const group = new PodGroup("g", [a, c, none, b]);
    expect(told(group)).toEqual(["TCP/80: 10.0.0.1 10.0.0.2", "TCP/8080: 10.0.0.3"]);
    expect(told(group, [wanted("UDP/web")])).toEqual([]);
    expect(told(group, [wanted("TCP/web"), wanted("UDP/web")])).toEqual(told(group));
  });

  test("are the same objects for as long as their pods are", () => {
    const group = new PodGroup("g", [a, c]);
    const before = group.parts(web);
    expect(group.parts(web)).toBe(before);
    group.replace([a, c, none]);
    expect(group.parts(web).map(({ set }) => set)).toEqual(before.map(({ set }) => set));
    expect(group.parts(web)[0]?.set).toBe(before[0]?.set);
    group.change([b], []);
    const [first, second] = group.parts(web);
    expect([first?.set === before[0]?.set, second?.set === before[1]?.set]).toEqual([false, true]);
  });

  test("follow the ports of pods whose addresses stay", () => {
    const group = new PodGroup("g", [a]);
    expect(told(group)).toEqual(["TCP/80: 10.0.0.1"]);
    group.replace([{ ...a, ports: [named("TCP/web:81")] }]);
    expect(told(group)).toEqual(["TCP/81: 10.0.0.1"]);
  });

  test("of rules that may have gone are forgotten after thirty others", () => {
    const group = new PodGroup("g", [a]);
    const first = group.parts(web);
    const askFor = (from: number, to: number): void => {
      for (let i = from; i < to; i++) group.parts([wanted(`TCP/p${i}`)]);
    };
    askFor(1, 32);
    expect(group.parts(web)).toBe(first);
    askFor(32, 33);
    expect(group.parts(web)).not.toBe(first);
    expect(group.parts(web)).toEqual(first);
  });
});
