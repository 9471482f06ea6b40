import { expect, test } from "vitest";
import { parseArgs, podOf } from "./args.ts";

test.each([
  ["", []],
  ["A=1", [["A", "1"]]],
  [
    "A=1;B=;C=x y",
    [
      ["A", "1"],
      ["B", ""],
      ["C", "x y"],
    ],
  ],
  ["A=1;A=2", [["A", "2"]]],
])("CNI_ARGS %j", (text, wanted) => {
  expect([...parseArgs(text)]).toEqual(wanted);
});

test.each([
  ["A", "part 1 has no KEY="],
  ["=1", "part 1 has no KEY="],
  ["A=1;", "part 2 has no KEY="],
  ["A=1;;B=2", "part 2 has no KEY="],
  ["A=1;TOKEN=secret==", 'part 2 has more than one "=" (key "TOKEN")'],
])("CNI_ARGS %j are refused, and no value is told", (text, is) => {
  const refused = expect.objectContaining({ code: 4, message: `Cannot read CNI_ARGS: ${is}, wanted KEY=VALUE` });
  expect(() => parseArgs(text)).toThrow(refused);
});

const [name, namespace, uid] = ["K8S_POD_NAME=web", "K8S_POD_NAMESPACE=shop", "K8S_POD_UID=u"];
test.each([
  [[name, namespace, uid], { name: "web", namespace: "shop", uid: "u" }],
  [[name], { name: "web", namespace: "", uid: "" }],
  [[namespace, uid], undefined],
  [["K8S_POD_NAME=", namespace], undefined],
  [["x", "=y", "TOKEN=a==", name, ""], { name: "web", namespace: "", uid: "" }],
  [["A=K8S_POD_NAME=no", "XK8S_POD_UID=no", name], { name: "web", namespace: "", uid: "" }],
  [["K8S_POD_NAME=first", name, namespace, "K8S_POD_NAMESPACE="], { name: "web", namespace: "", uid: "" }],
  [["K8S_POD_NAME=a=b", "A=K8S_POD_NAME=no"], { name: "a=b", namespace: "", uid: "" }],
  [["A=K8S_POD_NAME=no"], undefined],
  [[], undefined],
])("the pod of %j", (pairs, wanted) => {
  expect(podOf(pairs.join(";"))).toEqual(wanted);
});
