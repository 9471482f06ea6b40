import { expect, test } from "vitest";
import type { TraceLine } from "./trace-text.ts";
import { decisionWords, matchWords } from "./words.ts";

const port = (ofport: number): string => `port${ofport}`;
const action = (text: string): TraceLine => ({ t: "action", text });
const decided = (...texts: readonly string[]) => decisionWords(texts.map(action), port);

test("registers and marks are told by what they mean", () => {
  expect(matchWords("", port)).toBe("any packet");
  expect(matchWords('ip,in_port="a-0b9mwt"', port)).toBe("ip, in_port=a-0b9mwt");
  expect(matchWords("ct_state=+new+trk,ip,reg0=0x203/0xf", port)).toBe("ct_state=+new+trk, ip, from a pod");
  expect(matchWords("ct_mark=0x10/0x10,ip,nw_dst=10.0.0.0/8", port)).toBe(
    "connection to a service, ip, nw_dst=10.0.0.0/8",
  );
  expect(matchWords("reg0=0x8000/0x8000,reg9=0x5", port)).toBe("reg0=0x8000/0x8000, reg9=0x5/0xffffffff");
  expect(matchWords("reg10=0xb,reg11=0", port)).toBe("sender's project has VNID 11, receiver's project has VNID 0");
  expect(
    decided("set_field:0x7->reg5", "set_field:0x1000000/0x1000000->reg0", "set_field:0x1200000003->xreg4"),
  ).toEqual(["rule 7 lets it be sent", "a rule for sending is found", "label 0x1200000003"]);
  expect(decided("set_field:0xc->reg1", "set_field:0x200000/0x600000->reg0")).toEqual([
    "by port port12",
    "to be sent out",
  ]);
  expect(decided("set_field:0xa0a0103->reg3", "set_field:0x21f90/0x7ffff->reg4")).toEqual([
    "endpoint 10.10.1.3",
    "endpoint's port 8080",
    "endpoint selected",
  ]);
});

test("actions are told by what they decide; ways to the next table are not", () => {
  expect(decided("resubmit(,30)", "thaw", "Resuming from table 80", "bucket 0", "nat", "group:7")).toEqual([
    "group 7 chooses",
  ]);
  expect(
    decided(
      "ct(commit,table=140,zone=65520,nat(dst=10.10.1.3:8080))",
      "nat(dst=10.10.1.3:8080)",
      "dec_ttl",
      "meter:1024",
      "drop",
    ),
  ).toEqual([
    "connection remembered (zone 65520)",
    "destination translated to 10.10.1.3:8080",
    "one hop counted",
    "counted among the pod's new connections",
    "dropped",
  ]);
  expect(
    decided("set_field:172.30.0.2->tun_dst", "set_field:0x2a->tun_id", "set_field:0a:00:00:00:00:03->eth_dst"),
  ).toEqual(["tunnel to 172.30.0.2", "tunnel key 42", "destination MAC becomes 0a:00:00:00:00:03"]);
  expect(decided("output:p2", "IN_PORT", "something_new(1)")).toEqual([
    "sent out by port p2",
    "sent back by the port where it came in",
    "something_new(1)",
  ]);
});
