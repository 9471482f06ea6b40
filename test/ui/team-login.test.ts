import { readFileSync } from "node:fs";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { Certificates } from "../support/certificates.ts";
import { eventually } from "../support/eventually.ts";
import { describeWith } from "../support/requires.ts";
import { scratchDir } from "../support/scratch-dir.ts";
import { TestBrowser } from "./browser.ts";
import { generatedNodes } from "./generated-documents.ts";
import { GeneratedSource } from "./generated-source.ts";
import { axeFindings, faultsOf, overflowOf } from "./page-checks.ts";
import { ServedTeam, viewerRights } from "./served-team.ts";

/** A browser on a busy machine. */
const patience = { timeout: 30_000 };

describeWith("signing in to the page for a team, in a browser", ["chromium", "openssl"], () => {
  let browser: TestBrowser;
  let team: ServedTeam;
  let token: string;

  beforeAll(async () => {
    browser = await TestBrowser.start();
  });
  beforeEach(async () => {
    team = await ServedTeam.of(new GeneratedSource(generatedNodes(3, 30)));
    token = team.access.person("ann", viewerRights);
  });
  afterEach(async () => {
    await browser.closePages();
    await team[Symbol.asyncDispose]();
  });
  afterAll(() => browser?.[Symbol.asyncDispose]());

  async function open(options: Parameters<TestBrowser["page"]>[0] = {}): Promise<{ page: Page; faults: string[] }> {
    const page = await browser.page({ ignoreHTTPSErrors: true, ...options });
    const faults = faultsOf(page, team.origin);
    await page.goto(team.at(""));
    await page.getByRole("heading", { name: "Sign in" }).waitFor(patience);
    return { page, faults };
  }

  async function signIn(page: Page, text: string): Promise<void> {
    await page.getByLabel("Token", { exact: true }).fill(text);
    await page.getByRole("button", { name: "Sign in" }).click();
  }

  test("the view is free of what axe finds, fits 320 pixels, and takes a token by keyboard alone", async () => {
    for (const colorScheme of ["light", "dark"] as const) {
      const narrow = { viewport: { width: 320, height: 640 } };
      const { page, faults } = await open({ colorScheme, ...(colorScheme === "dark" ? narrow : {}) });
      expect([colorScheme, await axeFindings(page), await overflowOf(page)]).toEqual([colorScheme, [], 0]);
      await page.keyboard.type("wrong");
      await page.keyboard.press("Enter");
      await page.getByRole("alert").getByText("the API server does not know this token").waitFor(patience);
      expect([colorScheme, await axeFindings(page), await overflowOf(page)]).toEqual([colorScheme, [], 0]);
      await page.keyboard.type(token);
      await page.keyboard.press("Enter");
      await page.getByText("The network is fine: 3 nodes are ready.").waitFor(patience);
      await page.getByText("Signed in as ann").waitFor(patience);
      expect([colorScheme, await axeFindings(page), await overflowOf(page)]).toEqual([colorScheme, [], 0]);
      expect(faults).toEqual([]);
    }
  });

  test("the token stays nowhere in the browser, a reload and another tab are signed in, and a sign-out is for all", async () => {
    const { page } = await open();
    await signIn(page, token);
    await page.getByText("The network is fine").waitFor(patience);
    const kept = await page.evaluate(
      "JSON.stringify({ ...localStorage, ...sessionStorage }) + document.cookie + location",
    );
    expect(kept).not.toContain(token);
    const [cookie] = await page.context().cookies();
    expect(cookie).toMatchObject({ httpOnly: true, secure: true, sameSite: "Strict", path: "/", domain: "127.0.0.1" });
    await page.reload();
    await page.getByText("The network is fine").waitFor(patience);
    const tab = await page.context().newPage();
    await tab.goto(team.at("map?node=node-1"));
    await tab.getByRole("heading", { name: "Pods of node-1" }).waitFor(patience);
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByRole("heading", { name: "Sign in" }).waitFor(patience);
    expect(await page.getByText("The network is fine").count()).toBe(0);
    await tab.getByText("The session has ended").waitFor(patience);
    expect(await tab.getByText("web-1-").count()).toBe(0);
    await page.reload();
    await page.getByRole("heading", { name: "Sign in" }).waitFor(patience);
  });

  test("an account that is gone takes what it has seen off the screen, and another signs in there", async () => {
    const { page } = await open();
    await signIn(page, token);
    await page.goto(team.at("map?node=node-1"));
    await page.getByRole("heading", { name: "Pods of node-1" }).waitFor(patience);
    team.access.tokens.delete(token);
    await page.getByText("The session has ended. Sign in again.").waitFor({ timeout: 60_000 });
    expect(await page.getByText("web-1-").count()).toBe(0);
    await signIn(page, team.access.person("bob", viewerRights));
    await page.getByText("Signed in as bob").waitFor(patience);
    await page.getByRole("heading", { name: "Pods of node-1" }).waitFor(patience);
  }, 120_000);

  test("a server on another port is sent the cookie, and can do nothing with it", async () => {
    const { page } = await open();
    await signIn(page, token);
    await page.getByText("The network is fine").waitFor(patience);
    const thief = await startThief();
    await using _ = thief;
    await page.goto(`https://127.0.0.1:${thief.port}/`);
    await eventually(() => thief.cookies.length > 0, "the cookie");
    const cookie = thief.cookies[0] ?? "";
    expect(cookie).toContain(`__Host-pipette-${team.port}=`);
    for (const key of ["", "1"])
      expect((await team.ask("/api/v1/about", { cookie, "x-pipette-page": key })).status).toBe(401);
    // Nor can its page, in the browser where somebody is signed in.
    const asked = await page.evaluate(
      `Promise.all(["include", "same-origin"].map((credentials) =>
        fetch("${team.origin}/api/v1/about", { credentials, headers: { "x-pipette-page": "1" } }).then(() => "read", () => "refused")))`,
    );
    expect(asked).toEqual(["refused", "refused"]);
    const blind = await page.evaluate(
      `fetch("${team.origin}/api/v1/leave", { method: "POST", mode: "no-cors", credentials: "include", body: "{}" }).then(() => "sent", () => "refused")`,
    );
    expect(blind).toBe("refused");
    await page.goto(team.at("overview"));
    await page.getByText("The network is fine").waitFor(patience);
  });

  /** Another program of the same machine, with TLS as well. */
  async function startThief(): Promise<
    AsyncDisposable & { readonly port: number; readonly cookies: readonly string[] }
  > {
    const scratch = scratchDir();
    const certificates = new Certificates(scratch.path);
    await certificates.make("thief", undefined, "127.0.0.1");
    const { cert, key } = certificates.pair("thief");
    const cookies: string[] = [];
    const server: Server = createServer({ cert: readFileSync(cert), key: readFileSync(key) }, (request, response) => {
      if (request.headers.cookie !== undefined) cookies.push(request.headers.cookie);
      response.writeHead(200, { "content-type": "text/html" }).end("<title>thief</title>");
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return {
      port: (server.address() as AddressInfo).port,
      cookies,
      [Symbol.asyncDispose]: async () => {
        server.closeAllConnections();
        server.close();
        scratch[Symbol.dispose]();
      },
    };
  }

  test("who may not look at nodes is shown no view of them", async () => {
    await team[Symbol.asyncDispose]();
    team = await ServedTeam.of(new GeneratedSource(generatedNodes(1, 3)), {
      commandsFor: async () => ({ names: ["why"], run: async () => ({ line: "" }) }),
    });
    const { page } = await open();
    await signIn(page, team.access.person("carol", []));
    await page.getByText("Who may reach whom is told here").waitFor(patience);
    expect(await page.locator("nav a").allTextContents()).toEqual(["Policies"]);
  });
});
