import type { Page } from "playwright-core";
import type { ScriptedProgram } from "./served-page.ts";

/** What commands print of the generated cluster, in the shape of their `--json`. */

const step = (name: string, matchInWords: string, ...decided: string[]) => ({
  table: 0,
  name,
  flow: { priority: 200, matchInWords },
  decided,
});

export function answerCommands(program: ScriptedProgram): void {
  const says = "no policy isolates shop/web-1-0 in what it sends";
  program.answers.set("trace", {
    status: 0,
    json: {
      client: "shop/api-1-0",
      server: "shop/cart-1-1",
      steps: [
        step("Classifier", "from the port of a pod", "marks it as from a pod"),
        step("SpoofGuard", "with the pod's own addresses"),
        step("ConntrackState", "the first of a connection", "goes through connection tracking"),
        step("EgressRule", "everything else"),
        step("L3Forwarding", "to a pod of this node", "rewrites the MAC addresses"),
        step("IngressRule", "allowed by shop/only-from-web", "remembers the rule"),
        step("L2Forwarding", "to the MAC of a pod", "sends it to port 4"),
        step("Output", "to a known port"),
      ],
      verdict: {
        t: "delivered",
        pod: "shop/cart-1-1",
        port: "veth0101",
        text: "delivered to pod shop/cart-1-1 by port veth0101",
      },
    },
  });
  program.answers.set("policy matrix", {
    status: 0,
    json: {
      groups: [
        "accounts/{app=db} (4 pods)",
        "monitoring/{} (6 pods)",
        "shop/{app=api} (12 pods)",
        "shop/{app=web} (18 pods)",
      ].map((name, i) => ({ name, namespace: name.split("/")[0], pods: [`shop/web-1-${i}`], count: 4 + 2 * i })),
      rows: ["+--+", "++++", "%-++", "-+%+"],
      partly: [
        { from: 2, to: 0, refused: "TCP 1-5431, 5433-65535; every UDP port" },
        { from: 3, to: 2, refused: "every UDP port" },
      ],
      omitted: 0,
    },
  });
  program.answers.set("policy why", {
    status: 0,
    json: {
      from: "shop/web-1-0",
      to: "shop/api-1-1",
      allowed: "all",
      sentence: "shop/web-1-0 may reach shop/api-1-1 at TCP 80: shop/only-from-web ingress[0] allows what it receives",
      cases: [
        {
          ports: "TCP 80",
          destinations: [],
          allowed: true,
          egress: { says, allowedBy: [], otherPort: [], otherPeer: [] },
          ingress: {
            says: "shop/only-from-web allows what it receives",
            allowedBy: [{ policy: "shop/only-from-web", place: "ingress[0]", allows: "TCP 80 from app=web" }],
            otherPort: [],
            otherPeer: [],
          },
        },
      ],
    },
  });
}

interface View {
  /** Where it is, if not under its name. */
  readonly path?: string;
  /** How its first sentence reads. */
  readonly answer: RegExp;
  /** Waits until it shows what it has to. */
  readonly ready: (page: Page) => Promise<unknown>;
}

const within = { timeout: 30_000 };
const seen = (text: string) => (page: Page) => page.getByText(text).first().waitFor(within);

/** The views with what a generated cluster has to show. */
export const views: Readonly<Record<string, View>> = {
  overview: { answer: /^The network is fine: 3 nodes are ready\.$/, ready: seen("shop/web-1-0") },
  map: { path: "map?node=node-1", answer: /^90 pods on 3 nodes; every node has a way/, ready: seen("Pods of node-1") },
  addresses: {
    path: "addresses?node=node-1&address=10.20.1.4",
    answer: /^There is room: 90 addresses are given out/,
    ready: seen("Leases of node-1"),
  },
  pipeline: { answer: /^On node-1 \d+ rules in 9 tables decide/, ready: seen("SpoofGuard") },
  policies: { answer: /policies isolate 12 pods on node-1, node-2, node-3, all in force/, ready: seen("A row sends") },
  trace: {
    path: "trace?from=shop/api-1-0&to=shop/cart-1-1",
    answer: /delivered to pod shop\/cart-1-1/,
    ready: async (page) => {
      await page.getByRole("button", { name: "Trace" }).click(within);
      await page.getByText("Step by step").waitFor(within);
    },
  },
  doctor: { answer: /^Nothing: on 3 nodes all agree\.$/, ready: seen("Pod starts") },
};
