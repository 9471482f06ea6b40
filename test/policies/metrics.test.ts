import { afterEach, beforeEach, expect, test } from "vitest";
import { readPod } from "../../shared/policy/mod.ts";
import { WatchingNode } from "../fakes/watching-node.ts";
import { eventually } from "../support/eventually.ts";
import { promtool, sumOf } from "../support/promtool.ts";
import { describeWith } from "../support/requires.ts";
import { ServedPolicies } from "./served-policies.ts";

describeWith("a controller whom Prometheus asks", ["openssl", "promtool"], () => {
  let served: ServedPolicies;

  beforeEach(async () => {
    served = await ServedPolicies.start();
  });
  afterEach(() => served[Symbol.asyncDispose]());

  const ask = (as: string, path = "/metrics"): Promise<Response> =>
    fetch(`${served.url}${path}`, { headers: { authorization: `Bearer ${as}` }, tls: { ca: served.ca } });

  test("tells who follows it and how long it takes, by names that Prometheus' own tool takes", async () => {
    const pod = readPod({ metadata: { namespace: "x", name: "a", uid: "u" }, spec: { nodeName: "n1" } });
    if (pod !== undefined) served.computation.putPod(pod);
    served.changed();
    await using _ = new WatchingNode(served.url, served.ca, "n1");
    await eventually(() => served.state?.watches.count === 1, "the node");
    const answer = await ask("admin");
    expect([answer.status, answer.headers.get("content-type")]).toEqual([
      200,
      "text/plain; version=0.0.4; charset=utf-8",
    ]);
    const text = await answer.text();
    expect(await promtool(["check", "metrics"], text)).toEqual({ status: 0, said: "" });
    expect(sumOf(text, "pipette_controller_ready")).toBe(1);
    expect(sumOf(text, "pipette_controller_agents")).toBe(1);
    expect(sumOf(text, "pipette_controller_objects", 'kind="pods"')).toBe(1);
    expect(sumOf(text, "pipette_controller_queue_depth")).toBe(0);
    expect(sumOf(text, "pipette_controller_sync_duration_seconds_count")).toBeGreaterThan(0);
    expect(sumOf(text, "process_resident_memory_bytes")).toBeGreaterThan(0);
    // What waits for nobody who is known is not shown.
    served.state = undefined;
    const early = await (await ask("admin")).text();
    expect(early).toContain("pipette_controller_ready 0\n");
    expect(early).not.toContain("pipette_controller_agents");
  });

  test("shows them to those alone whom the API server lets", async () => {
    expect((await ask("stranger")).status).toBe(401);
    // A node's agent may watch its policies, and no more.
    const refused = await ask("node-n1");
    expect(refused.status).toBe(403);
    expect(await refused.json()).toMatchObject({ reason: "Forbidden", message: '"node-n1" may not get /metrics' });
  });
});
