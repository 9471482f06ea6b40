import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { eventually } from "../support/eventually.ts";
import { describeWith } from "../support/requires.ts";
import { TestBrowser } from "./browser.ts";
import { generatedBundle } from "./generated-bundle.ts";
import { generatedNodes } from "./generated-documents.ts";
import { GeneratedSource } from "./generated-source.ts";
import { axeFindings, faultsOf, overflowOf } from "./page-checks.ts";
import { answerCommands, views } from "./sample-answers.ts";
import { ServedPage } from "./served-page.ts";

/** A browser on a busy machine. */
const patience = { timeout: 30_000 };

describeWith("the page in a browser", ["chromium"], () => {
  let browser: TestBrowser;
  let source: GeneratedSource;
  let served: ServedPage;

  beforeAll(async () => {
    browser = await TestBrowser.start();
  });
  afterEach(async () => {
    await browser.closePages();
    await served?.[Symbol.asyncDispose]();
  });
  afterAll(() => browser?.[Symbol.asyncDispose]());

  /** Opens it with its token; what goes wrong in it, and what it asks of others, ends the test. */
  async function open(options: Parameters<TestBrowser["page"]>[0] = {}): Promise<{ page: Page; faults: string[] }> {
    const page = await browser.page(options);
    const faults = faultsOf(page, served.origin);
    await page.goto(served.url);
    await page.getByText("The network is fine").waitFor(patience);
    return { page, faults };
  }

  async function serve(nodes = generatedNodes(3, 30)): Promise<void> {
    source = new GeneratedSource(nodes);
    served = await ServedPage.of(source, { cluster: [], node: [] });
    answerCommands(served.program);
  }

  async function go(page: Page, view: string): Promise<void> {
    await page.goto(served.at(view));
    const name = view.split("?")[0] ?? "";
    await page.locator(`nav a[aria-current=page][href="#/${name}"]`).waitFor(patience);
  }

  test("every view answers its question first, is free of what axe finds, light and dark, and fits 320 pixels", async () => {
    for (const colorScheme of ["light", "dark"] as const) {
      await served?.[Symbol.asyncDispose]();
      await serve();
      const { page, faults } = await browserPage(colorScheme);
      for (const [name, { answer, path = name }] of Object.entries(views)) {
        await go(page, path);
        await views[name]?.ready(page);
        const said = (): Promise<string | null> => page.locator(".answer").textContent();
        await eventually(async () => answer.test((await said()) ?? ""), `the answer of ${name}`);
        expect([name, colorScheme, await axeFindings(page)]).toEqual([name, colorScheme, []]);
        expect([name, await overflowOf(page)]).toEqual([name, 0]);
      }
      expect(faults).toEqual([]);
    }
  });

  /** The dark one as narrow as a page may become. */
  const browserPage = (colorScheme: "light" | "dark") =>
    open({ colorScheme, ...(colorScheme === "dark" ? { viewport: { width: 320, height: 640 } } : {}) });

  test("the address opens one browser once, and another not", async () => {
    await serve();
    const { page } = await open();
    expect(page.url()).toBe(`${served.origin}/#/`);
    await page.reload();
    await page.getByText("The network is fine").waitFor(patience);
    const other = await browser.page();
    await other.goto(served.url);
    await other.getByText("Each start of pipette ui opens the page in one browser").waitFor(patience);
  });

  test("names that are hostile stay texts", async () => {
    const long = `${"x".repeat(245)}-end`;
    const names = ["<img src=x onerror=alert(1)>", "\u202egnp.exe", long];
    await serve(generatedNodes(1, 5).map((node) => ({ ...node, podNames: names })));
    const { page, faults } = await open({ viewport: { width: 320, height: 640 } });
    page.on("dialog", () => faults.push("a dialog"));
    await go(page, "map?node=node-1");
    await page.getByText("<img src=x onerror=alert(1)>").first().waitFor(patience);
    await page.getByText(long).first().waitFor(patience);
    expect(await page.locator("img").count()).toBe(0);
    expect(await overflowOf(page)).toBe(0);
    await page.getByRole("searchbox").fill("onerror");
    await page.locator(".hits b").getByText("onerror").waitFor(patience);
    expect(faults).toEqual([]);
  });

  test("a change is drawn without a reload, and a node that falls silent is told and greyed", async () => {
    await serve();
    const { page } = await open();
    await go(page, "map?node=node-1");
    source.change("node-1", "pods", (before) => ({
      ...before,
      pods: [{ ...before.pods[0]!, podName: "newcomer", containerId: "new" }, ...before.pods],
    }));
    await page.getByRole("cell", { name: "newcomer" }).waitFor(patience);
    await page.getByText("91 pods on 3 nodes").waitFor(patience);
    source.fail("node-2", 'Cannot ask node "node-2": it does not answer');
    await page.getByRole("button", { name: "node-2 does not answer" }).waitFor(patience);
    source.fail("node-2");
    await page.getByRole("button", { name: "node-2 ready" }).waitFor(patience);
  });

  test("who had an address before, and how long packets take to each other node", async () => {
    await serve();
    const { page, faults } = await open();
    await go(page, "addresses?node=node-1&address=10.20.1.4");
    const history = page.getByRole("region", { name: "Who had 10.20.1.4 of node-1, and when" });
    await history.getByText("-1-old-2").waitFor(patience);
    expect(await history.locator("tbody tr").count()).toBe(2);
    await history.getByText("now").waitFor(patience);
    await go(page, "map?node=node-1");
    const ways = page.getByRole("region", { name: "Ways of pods' packets from node-1" });
    await ways
      .getByText(/^\d+ µs$/)
      .first()
      .waitFor(patience);
    source.change("node-1", "peers", (before) => ({
      ...before,
      peers: before.peers.map((peer) => ({
        ...peer,
        ...(peer.name === "node-3"
          ? { probes: [{ address: "10.20.3.1", state: "lost", failures: 4, reason: "nothing comes back" } as const] }
          : {}),
      })),
    }));
    await ways.getByText("10.20.3.1 answers no more: nothing comes back").waitFor(patience);
    await page.getByText("1 way between nodes of 6 is not fine: node-1 to node-3.").waitFor(patience);
    expect(faults).toEqual([]);
  });

  test("by keyboard: to the content, along a strip, to the search, out of it", async () => {
    await serve();
    const { page } = await open();
    await go(page, "addresses");
    await page.getByRole("button", { name: "To the content" }).focus();
    await page.keyboard.press("Enter");
    expect(await page.evaluate("document.activeElement?.tagName")).toBe("H1");
    const strip = page.getByRole("slider").first();
    await strip.focus();
    for (const key of ["Home", "ArrowRight", "ArrowRight", "ArrowRight"]) await page.keyboard.press(key);
    await eventually(async () => (await strip.getAttribute("aria-valuetext")) === "10.20.1.3: allocated", "the cell");
    await page.getByText("10.20.1.3: allocated, of ").waitFor(patience);
    expect(page.url()).toContain("address=10.20.1.3");
    await page.keyboard.press("/");
    await page.keyboard.type("node-2");
    await page.locator(".hits a").first().waitFor(patience);
    await page.keyboard.press("Escape");
    await eventually(async () => (await page.locator(".hits").count()) === 0, "the end of the search");
  });

  test("a bundle of 5,000 pods on 50 nodes: no more is drawn than somebody sees", async () => {
    await using bundle = await generatedBundle(generatedNodes(50, 100));
    served = await ServedPage.of(bundle.source);
    const { page, faults } = await open();
    await go(page, "map?node=node-7");
    await page.getByText("5,000 pods on 50 nodes; every node has a way to every other").waitFor(patience);
    expect(await page.getByRole("region", { name: "Pods of node-7" }).locator("tbody tr").count()).toBe(100);
    await page.getByText("Shows the bundle").waitFor(patience);
    expect(await page.locator("nav a").allTextContents()).not.toContain("Trace");
    for (const view of ["overview", "map", "addresses", "doctor", "policies"]) {
      await go(page, view);
      await page.locator(".answer .mark:not(.unknown)").waitFor(patience);
      expect(await page.locator("*").count()).toBeLessThan(3_000);
    }
    expect(faults).toEqual([]);
  });

  test("a repair is shown before it is done", async () => {
    await serve();
    const { page } = await open();
    const wish = {
      severity: "error",
      code: "leaked",
      what: "nobody has 10.20.1.9",
      why: "w",
      todo: "release it",
    } as const;
    source.change("node-1", "findings", (before) => ({ ...before, findings: [{ ...wish, repairable: true }] }));
    const finding = { ...wish, repairable: true };
    served.program.answers.set("doctor --json", { status: 1, json: { findings: [finding] } });
    served.program.answers.set("doctor --repair", {
      status: 0,
      json: { findings: [], repaired: [{ what: wish.what, done: "released" }] },
    });
    await go(page, "doctor");
    await page.getByText("1 finding on node-1. First: release it.").waitFor(patience);
    await page.getByRole("button", { name: "Show what a repair would do" }).click();
    await page.getByRole("button", { name: "Do 1 repair now" }).waitFor(patience);
    expect(served.program.started.map(({ args }) => args.join(" "))).toEqual(["doctor --json"]);
    await page.getByRole("button", { name: "Do 1 repair now" }).click();
    await page.getByText("nobody has 10.20.1.9: released").waitFor(patience);
    await page.getByText("Now all agree.").waitFor(patience);
    expect(served.program.started.map(({ args }) => args.join(" "))).toEqual([
      "doctor --json",
      "doctor --repair --json",
    ]);
  });
});
