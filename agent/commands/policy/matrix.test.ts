import { expect, test } from "vitest";
import type { ApiObject } from "../../../shared/kubernetes/mod.ts";
import { readPod, readPolicy } from "../../../shared/policy/mod.ts";
import { egress, ingress, ns, pod, ports, toA } from "../../../test/fakes/policy-world.ts";
import { ClusterView } from "./cluster-view.ts";
import { matrixOf } from "./matrix.ts";

const pods = ["x/a", "x/b", "y/a", "y/b"].flatMap((key, i) => {
  const [namespace = "", name = ""] = key.split("/");
  const metadata = { namespace, name, uid: key, labels: { pod: name } };
  return readPod({ metadata, spec: { containers: [] }, status: { podIPs: [{ ip: `10.0.0.${i + 1}` }] } }) ?? [];
});
const namespaces = ["x", "y"].map((name) => ({ name, labels: { ns: name } }));
const viewOf = (...specs: (readonly [string, ApiObject])[]): ClusterView =>
  new ClusterView(
    pods,
    namespaces,
    specs.flatMap(([namespace, spec], i) => readPolicy({ metadata: { namespace, name: `p${i}` }, spec }) ?? []),
  );

test("without policies all reach all, and are told apart by nothing but their namespace", () => {
  const { groups, rows, partly } = matrixOf(viewOf());
  expect(groups.map(({ pods, count }) => [pods, count])).toEqual([
    [["x/a", "x/b"], 2],
    [["y/a", "y/b"], 2],
  ]);
  expect([rows, partly]).toEqual([["++", "++"], []]);
});

test("every two groups of pods, by what policies refuse between them", () => {
  const view = viewOf(
    ["x", toA(ingress({ from: [pod("b")] }))],
    ["x", toA(ingress({ from: [ns("y")], ...ports({ port: 80 }) }))],
    ["y", toA(egress())],
  );
  const { groups, rows, partly } = matrixOf(view);
  expect(groups.map(({ name }) => name)).toEqual(["x/a", "x/b", "y/a", "y/b"]);
  // x/a is reached by x/b, and by y/b at port 80; y/a sends nothing.
  expect(rows).toEqual(["++++", "++++", "--+-", "%+++"]);
  expect(partly).toEqual([
    {
      from: 3,
      to: 0,
      refused: "TCP 1-79, 81-65535; every UDP port; every SCTP port; ICMP and other protocols",
    },
  ]);
});

test("only pods of one namespace, where that is wanted", () => {
  const { groups, rows } = matrixOf(viewOf(["x", ingress()]), "x");
  expect(groups.map(({ namespace, count }) => [namespace, count])).toEqual([["x", 2]]);
  expect(rows).toEqual(["-"]);
});
