import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { AgentHome, type AgentProcess, eventually, resultOf } from "../support/agent-process.ts";
import { NetworkSandbox } from "../support/network-sandbox.ts";
import { describeWith } from "../support/requires.ts";
import { TestBrowser } from "./browser.ts";
import { StartedPage } from "./started-page.ts";

const patience = { timeout: 60_000 };
/** The doctor looks several times each time, and asks others. */
const longMs = 400_000;
const longPatience = { timeout: 120_000 };

describeWith("the page of a real agent with real pods", ["root", "nft", "chromium"], () => {
  const stack = new AsyncDisposableStack();
  let sandbox: NetworkSandbox;
  let home: AgentHome;
  let agent: AgentProcess;
  let started: StartedPage;
  let page: Page;
  let node: string;

  const add = async (name: string): Promise<{ readonly netns: string; readonly address: string }> => {
    const netns = await sandbox.addPod(name);
    const args = `IgnoreUnknown=1;K8S_POD_NAMESPACE=shop;K8S_POD_NAME=${name};K8S_POD_UID=u-${name}`;
    const { ips } = resultOf(await home.cmd("cmdAdd", name, { netns, args }));
    return { netns, address: ips[0]?.address.split("/")[0] ?? "" };
  };
  const cellText = async (): Promise<string | null> => page.getByRole("slider").first().getAttribute("aria-valuetext");

  beforeAll(async () => {
    sandbox = stack.use(await NetworkSandbox.enter("pt-ui-"));
    home = stack.use(
      new AgentHome({
        networks: [{ name: "pods", subnets: ["10.78.0.0/25"], bridge: "ptd0", masquerade: false }],
        // What a test takes away is left to the doctor.
        janitorIntervalMs: 10_000,
      }),
    );
    agent = await home.start();
    started = stack.use(await StartedPage.start(["--socket", home.socket, "--config", home.configFile]));
    page = await stack.use(await TestBrowser.start()).page();
    await page.goto(started.url);
    await page.getByText("The network is fine: 1 node is ready.").waitFor(patience);
    node = (await page.locator("tbody a").first().textContent()) ?? "";
  });
  afterAll(() => stack.disposeAsync());

  test("what the data path has not is not offered", async () => {
    const names = await page.locator("nav a").allTextContents();
    expect(names).toEqual(["Overview", "Map", "Addresses", "Doctor"]);
  });

  test("a pod that comes is drawn, with its call and its address, before the next one comes; and it goes", async () => {
    await page.goto(started.at("map"));
    const pods = page.locator("tbody");
    for (const name of ["first", "second"]) {
      await add(name);
      await pods.getByText(`shop/${name}`, { exact: true }).waitFor(patience);
    }
    await page.getByText("2 pods on 1 node").waitFor(patience);
    await page.goto(started.at("overview"));
    await page.getByRole("row", { name: "ADD shop/second" }).getByText("done").waitFor(patience);
    const { address } = await add("third");
    await page.goto(started.at(`addresses?node=${node}&address=${address}`));
    await eventually(async () => (await cellText()) === `${address}: allocated`, "the cell", 60_000);
    await page.getByText(`${address}: allocated, of shop/third since`).waitFor(patience);
    await home.cmd("cmdDel", "third");
    await eventually(async () => (await cellText()) === `${address}: cooling`, "the end of the lease", 60_000);
    await page.getByText(`${address}: cooling, last of shop/third since`).waitFor(patience);
  });

  test("an agent that has gone is told, and what it has said stays; it comes back", async () => {
    await page.goto(started.at("map"));
    await page.locator("tbody").getByText("shop/first").waitFor(patience);
    await agent.end();
    await page.getByRole("button", { name: `${node} does not answer` }).waitFor(patience);
    expect(await page.locator("tbody").getByText("shop/first").count()).toBe(1);
    agent = await home.start();
    await page.getByRole("button", { name: `${node} ready` }).waitFor(patience);
    await add("fourth");
    await page.locator("tbody").getByText("shop/fourth").waitFor(patience);
  });

  test(
    "what disagrees is found, shown how it would be mended, and mended by the doctor itself",
    async () => {
      await page.goto(started.at("doctor"));
      await page.getByText(/Nothing: on .* all agree/).waitFor(longPatience);
      // Somebody takes a pod's interface away behind the agent's back.
      const { interfaces } = JSON.parse(
        await sandbox.node("ip -j link show master ptd0").then((text) => `{"interfaces":${text}}`),
      ) as {
        interfaces: { ifname: string }[];
      };
      await sandbox.node(`ip link del ${interfaces[0]?.ifname ?? ""}`);
      await page.getByRole("button", { name: "Show what a repair would do" }).click(longPatience);
      await page.getByRole("button", { name: /^Do \d+ repairs? now$/ }).click(longPatience);
      await page.getByText("Now all agree.").waitFor(longPatience);
    },
    longMs,
  );

  test("the page ends with its command, and says so in the browser", async () => {
    expect(await started.end()).toBe(0);
    await page.getByText("Not connected since").waitFor(patience);
  });
});
