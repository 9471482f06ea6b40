import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { compileExecutables } from "../conformance/plugin.ts";
import { Lab } from "../overlay/lab/lab.ts";
import type { LabNode } from "../overlay/lab/lab-node.ts";
import { eventually } from "../support/eventually.ts";
import { describeWith } from "../support/requires.ts";
import { TestBrowser } from "./browser.ts";
import { StartedPage } from "./started-page.ts";

const patience = { timeout: 60_000 };

describeWith("the page of a node of an overlay", ["root", "openvswitch", "nft", "etcd", "chromium"], () => {
  const stack = new AsyncDisposableStack();
  let node: LabNode;
  let other: LabNode;
  let started: StartedPage;
  let page: Page;

  beforeAll(async () => {
    compileExecutables();
    const lab = stack.use(await Lab.start({ nodes: ["a", "a"] }));
    [node, other] = [lab.node(1), lab.node(2)];
    await node.addPod("web", { project: "shop" });
    await node.addPod("db", { project: "shop" });
    await other.addPod("far", { project: "shop" });
    started = stack.use(await StartedPage.start(["--socket", node.home.socket, "--config", node.home.configFile]));
    page = await stack.use(await TestBrowser.start()).page();
    await page.goto(started.url);
    await page.locator(".answer .mark:not(.unknown)").waitFor(patience);
  }, 180_000);
  afterAll(() => stack.disposeAsync());

  test("the map has the node, its pods, and its way to the other node", async () => {
    await page.goto(started.at("map"));
    await page
      .getByText(/^2 pods on 1 node; every node has a way to every other, as far as they are asked/)
      .waitFor(patience);
    await page.getByRole("cell", { name: "shop/web" }).waitFor(patience);
    expect(await page.locator(".node .name").allTextContents()).toEqual(["n1", "n2"]);
    expect(await page.locator(".pair.good").count()).toBe(1);
  });

  test("the pipeline has the tables with their flows in words", async () => {
    await page.goto(started.at("pipeline"));
    await page
      .getByText(/^On .* \d+ rules in \d+ tables decide about each packet: bridge .* of Open vSwitch/)
      .waitFor(patience);
    await page.locator(".stage").getByText("SpoofGuard", { exact: true }).click(patience);
    await page.getByText("This table ").waitFor(patience);
    const rows = page.locator("tbody tr");
    await rows.first().waitFor(patience);
    const all = await rows.count();
    await page.getByLabel("Only with").fill([...node.pods][0]?.address(4) ?? "");
    await eventually(async () => {
      const left = await rows.count();
      return left > 0 && left < all;
    }, "only the flows of the address");
  });

  test("a trace draws the way to a pod, and to where a packet of another's address is dropped", async () => {
    await page.goto(started.at("trace?from=shop/web&to=shop/db&protocol=tcp&port=80"));
    await page.getByRole("button", { name: "Trace" }).click(patience);
    await page.getByText(/^shop\/web to shop\/db: delivered to pod shop\/db by port/).waitFor(patience);
    expect(await page.locator(".path g.step").count()).toBeGreaterThan(3);
    expect(await page.locator(".steps li").last().textContent()).toMatch(/^delivered to pod shop\/db/);
    await page.getByRole("combobox", { name: "To", exact: true }).fill([...other.pods][0]?.address(4) ?? "");
    await page.getByRole("button", { name: "Trace" }).click(patience);
    await page
      .getByText(/sent through the tunnel .* to node /)
      .first()
      .waitFor(patience);
    await page.getByText("To go on, on that node:").waitFor(patience);
  }, 180_000);

  test("an injected packet is drawn with its nodes, and the page says what it asks and what it cannot", async () => {
    await page.goto(started.at("trace?from=shop/web&to=shop/db&how=injected"));
    await page.getByRole("button", { name: "Trace" }).click(patience);
    await page.getByText(/^shop\/web to shop\/db: delivered on node n1 to pod shop\/db by port/).waitFor(patience);
    expect(await page.locator(".path g.node").allTextContents()).toEqual([expect.stringContaining("node n1")]);
    await page.getByRole("combobox", { name: "To", exact: true }).fill([...other.pods][0]?.address(4) ?? "");
    await page.getByRole("button", { name: "Trace" }).click(patience);
    await page.getByText("goes on to node n2").first().waitFor(patience);
    await page.getByText("other nodes are not asked by the socket of this one").first().waitFor(patience);
  }, 180_000);
});
