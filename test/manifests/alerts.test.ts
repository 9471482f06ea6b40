import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { agentMetrics } from "../../agent/metrics/agent-metrics.ts";
import { controllerMetrics } from "../../controller/controller-metrics.ts";
import { promtool } from "../support/promtool.ts";
import { describeWith } from "../support/requires.ts";
import { scratchDir } from "../support/scratch-dir.ts";

const rulesFile = fileURLToPath(new URL("../../conf/prometheus/rules.yaml", import.meta.url));

/** By series, values of each minute as promtool writes them. */
type Series = Readonly<Record<string, string>>;

interface Case {
  readonly fires: Series;
  /** Just not. */
  readonly silent: Series;
  /** Labels of the alert, besides its severity. */
  readonly labels: Readonly<Record<string, string>>;
  readonly atMinutes?: number;
}

const node = 'instance="n1"';
const steady = (value: number | string): string => `${value}x120`;
/** So many more each minute. */
const rising = (by: number): string => `0+${by}x120`;

/** Pods of which all but few take so long. */
const latency = (name: string, slow: boolean): Series => ({
  [`${name}_bucket{${node},le="5"}`]: rising(slow ? 1 : 10),
  [`${name}_bucket{${node},le="10"}`]: rising(10),
  [`${name}_bucket{${node},le="+Inf"}`]: rising(10),
});
const addresses = (free: string, cooling: string): Series => ({
  [`pipette_ipam_addresses{${node},network="pods",state="free"}`]: free,
  [`pipette_ipam_addresses{${node},network="pods",state="cooling"}`]: cooling,
  [`pipette_ipam_addresses{${node},network="pods",state="allocated"}`]: steady(200),
  [`pipette_ipam_addresses{${node},network="pods",state="excluded"}`]: steady(300),
});
const reclaimed = (reason: string): string => `pipette_ipam_leases_reclaimed_total{${node},reason="${reason}"}`;
const requests = (code: number): string => `pipette_cni_requests_total{${node},verb="ADD",code="${code}"}`;
const reconnects = `pipette_datapath_reconnects_total{${node},target="ovsdb"}`;
const services = (last: string): Series => ({
  [`kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds{${node}}`]: rising(60),
  [`kubeproxy_sync_proxy_rules_last_timestamp_seconds{${node}}`]: last,
});

const peers = (counts: Readonly<Record<string, number>>): Series =>
  Object.fromEntries(
    Object.entries(counts).map(([state, count]) => [`pipette_peers{${node},state="${state}"}`, steady(count)]),
  );
const hns = (code: string): string => `pipette_hns_failures_total{${node},call="HcnCreateEndpoint",code="${code}"}`;

const on = { instance: "n1" };
const pods = { ...on, network: "pods" };

const cases: Readonly<Record<string, Case>> = {
  PipetteNodeHasNoPodNetwork: {
    fires: { [`pipette_node_problems{${node}}`]: steady(1) },
    silent: { [`pipette_node_problems{${node}}`]: steady(0) },
    labels: on,
  },
  PipetteAgentNotReady: {
    fires: { [`pipette_agent_ready{${node}}`]: steady(0) },
    silent: { [`pipette_agent_ready{${node}}`]: steady(1) },
    labels: on,
  },
  PipetteAddCallsFail: {
    fires: { [requests(102)]: rising(1) },
    silent: { [requests(0)]: rising(9), [requests(11)]: rising(9), [requests(102)]: steady(5) },
    labels: on,
  },
  PipettePodsStartSlowly: {
    fires: latency("pipette_pod_network_ready_seconds", true),
    silent: latency("pipette_pod_network_ready_seconds", false),
    labels: on,
  },
  PipetteAddressesExhausted: {
    fires: addresses(steady(0), steady(0)),
    silent: addresses(steady(0), steady(1)),
    labels: pods,
  },
  // One less in each minute, 20 of 220 left; or none less.
  PipetteAddressesRunOut: {
    fires: addresses("120-1x110", steady(0)),
    silent: addresses(steady(30), steady(0)),
    labels: pods,
    atMinutes: 100,
  },
  PipetteLeasesLost: {
    fires: { [reclaimed("interface_lost")]: rising(1) },
    silent: { [reclaimed("reboot")]: rising(9), [reclaimed("full_pool")]: steady(50) },
    labels: on,
  },
  PipetteSwitchReconnects: {
    fires: { [reconnects]: rising(1) },
    silent: { [reconnects]: steady(9) },
    labels: { ...on, target: "ovsdb" },
  },
  PipettePeersRefused: {
    fires: { [`pipette_peers{${node},state="refused"}`]: steady(2) },
    silent: {
      [`pipette_peers{${node},state="reachable"}`]: steady(2),
      [`pipette_peers{${node},state="refused"}`]: steady(0),
    },
    labels: { ...on, state: "refused" },
  },
  PipettePeersLost: {
    fires: { [`pipette_peers{${node},state="lost"}`]: steady(1) },
    silent: {
      [`pipette_peers{${node},state="lost"}`]: steady(0),
      [`pipette_peers{${node},state="silent"}`]: steady(3),
    },
    labels: { ...on, state: "lost" },
  },
  PipetteNoPeerReached: {
    fires: peers({ reachable: 0, lost: 0, silent: 3, unknown: 0 }),
    silent: peers({ reachable: 1, lost: 2, silent: 3, unknown: 0 }),
    labels: on,
  },
  PipettePoliciesAreLate: {
    fires: latency("pipette_policy_realization_seconds", true),
    silent: latency("pipette_policy_realization_seconds", false),
    labels: on,
  },
  PipetteServicesHang: { fires: services(steady(0)), silent: services(rising(60)), labels: on },
  PipetteServicesRefused: {
    fires: { [`pipette_services{${node},state="refused"}`]: steady(1) },
    silent: { [`pipette_services{${node},state="accepted"}`]: steady(9) },
    labels: { ...on, state: "refused" },
  },
  PipetteDoctorFinds: {
    fires: { [`pipette_doctor_findings{${node},severity="error"}`]: steady(1) },
    silent: {
      [`pipette_doctor_findings{${node},severity="error"}`]: steady(0),
      [`pipette_doctor_findings{${node},severity="warning"}`]: steady(4),
    },
    labels: on,
  },
  PipetteHnsDoesNotAnswer: {
    fires: { [hns("timeout")]: rising(1) },
    silent: { [hns("HCN_E_ENDPOINT_NOT_FOUND")]: rising(9), [hns("timeout")]: steady(9) },
    labels: on,
  },
  PipetteControllerNotReady: {
    fires: { [`pipette_controller_ready{${node}}`]: steady(0) },
    silent: { [`pipette_controller_ready{${node}}`]: steady(1) },
    labels: on,
  },
};

interface Dashboard {
  readonly panels: readonly {
    readonly id: number;
    readonly gridPos: { readonly x: number; readonly y: number };
    readonly targets: readonly { readonly expr: string }[];
  }[];
}

interface Rules {
  readonly groups: readonly { readonly rules: readonly Rule[] }[];
}
interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

const rules = (parse(readFileSync(rulesFile, "utf8")) as Rules).groups.flatMap((group) => group.rules);

/** Names of metrics in a text, without what histograms add. */
const namesIn = (text: string): Set<string> =>
  new Set(
    [...text.matchAll(/\b(?:pipette|kubeproxy|process)_[a-z_]+/g)].map(([name]) =>
      name.replace(/_(bucket|sum|count)$/, ""),
    ),
  );

test.each(["rules.yaml", "dashboard.json"])("%s asks for nothing that nobody measures", (file) => {
  const known = new Set([...Object.keys(agentMetrics), ...Object.keys(controllerMetrics)]);
  const asked = namesIn(readFileSync(join(dirname(rulesFile), file), "utf8"));
  expect(asked.size).toBeGreaterThan(10);
  expect([...asked.difference(known)]).toEqual([]);
});

test("each panel of the dashboard asks for something, and has its place", () => {
  const { panels } = JSON.parse(readFileSync(join(dirname(rulesFile), "dashboard.json"), "utf8")) as Dashboard;
  const places = new Set(panels.map(({ gridPos: { x, y } }) => `${x} ${y}`));
  expect([places.size, new Set(panels.map(({ id }) => id)).size]).toEqual([panels.length, panels.length]);
  for (const { targets } of panels) expect([...namesIn(targets.map(({ expr }) => expr).join())]).not.toEqual([]);
});

test("each alert has a case of its own", () => {
  expect(Object.keys(cases)).toEqual(rules.map(({ alert }) => alert));
});

describeWith("the alert rules", ["promtool"], () => {
  test.each(rules)("$alert fires where it is to, and only there", async (rule) => {
    const { alert } = rule;
    const { fires, silent, labels, atMinutes = 60 } = cases[alert] as Case;
    using directory = scratchDir();
    const trial = (series: Series, expected: readonly object[]): object => ({
      interval: "1m",
      input_series: Object.entries(series).map(([name, values]) => ({ series: name, values })),
      alert_rule_test: [{ eval_time: `${atMinutes}m`, alertname: alert, exp_alerts: expected }],
    });
    // What the sentences say is compared apart: they hold values.
    const bare = { groups: [{ name: "one", rules: [{ ...rule, annotations: {} }] }] };
    writeFileSync(join(directory.path, "rules.yaml"), JSON.stringify(bare));
    const file = join(directory.path, "test.yaml");
    const tests = [trial(fires, [{ exp_labels: { ...rule.labels, ...labels } }]), trial(silent, [])];
    writeFileSync(file, JSON.stringify({ rule_files: ["rules.yaml"], evaluation_interval: "1m", tests }));
    const { status, said } = await promtool(["test", "rules", file]);
    expect({ status, said }).toMatchObject({ status: 0 });
  });

  test("are rules that Prometheus takes, with a sentence of what is and one of what to do", async () => {
    expect(await promtool(["check", "rules", rulesFile])).toMatchObject({ status: 0 });
    for (const { annotations, labels } of rules) {
      expect(Object.keys(annotations)).toEqual(["summary", "description"]);
      expect(["critical", "warning"]).toContain(labels["severity"]);
      // A command, a number or a log that says more.
      expect(annotations["description"]).toMatch(/"pipette |pipette_|[Ll]og\b/);
    }
  });
});
