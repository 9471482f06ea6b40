import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { TestBrowser } from "./browser.ts";
import { generatedAtMs, generatedNodes } from "./generated-documents.ts";
import { GeneratedSource } from "./generated-source.ts";
import { answerCommands, views } from "./sample-answers.ts";
import { ServedPage } from "./served-page.ts";
import { ServedTeam } from "./served-team.ts";

/** `npm run screenshots`: every view of a generated cluster, light and dark, into docs/ui. Look at them. */

const settledMs = 1_500;
const directory = fileURLToPath(new URL("../../docs/ui/", import.meta.url));
mkdirSync(directory, { recursive: true });
await using browser = await TestBrowser.start();
for (const colorScheme of ["light", "dark"] as const) {
  await using served = await ServedPage.of(sampleSource(), { cluster: [], node: [] });
  answerCommands(served.program);
  const options = { viewport: { width: 1000, height: 640 }, reducedMotion: "reduce", timezoneId: "UTC" } as const;
  const page = await browser.page({ ...options, colorScheme });
  // As the generated cluster's clock, so that a picture changes with what it shows alone.
  await page.clock.setFixedTime(generatedAtMs);
  await page.goto(served.url);
  for (const [name, { path = name, ready }] of Object.entries(views)) {
    await page.goto(served.at(path));
    await ready(page);
    // Changes come four times a second.
    await Bun.sleep(settledMs);
    await page.screenshot({ path: join(directory, `${name}-${colorScheme}.png`) });
    console.log(`docs/ui/${name}-${colorScheme}.png`);
  }
  await browser.closePages();
  await pictureOfSigningIn(colorScheme);
}

/** The page for a team, before anybody is in. */
async function pictureOfSigningIn(colorScheme: "light" | "dark"): Promise<void> {
  await using team = await ServedTeam.of(sampleSource());
  const options = { viewport: { width: 1000, height: 640 }, reducedMotion: "reduce", colorScheme } as const;
  const page = await browser.page({ ...options, ignoreHTTPSErrors: true });
  await page.goto(team.at(""));
  await page.getByRole("heading", { name: "Sign in" }).waitFor();
  await page.screenshot({ path: join(directory, `sign-in-${colorScheme}.png`) });
  console.log(`docs/ui/sign-in-${colorScheme}.png`);
  await browser.closePages();
}

/** With something to see in it: a pool that fills, a node that has lost another, a finding. */
function sampleSource(): GeneratedSource {
  const source = new GeneratedSource(generatedNodes(3, 30));
  source.change("node-3", "peers", (before) => ({
    ...before,
    peers: before.peers.map((peer) => (peer.name === "node-2" ? { ...peer, state: "lost" } : peer)),
  }));
  source.change("node-2", "findings", (before) => ({
    ...before,
    findings: [
      {
        severity: "error",
        code: "lease-without-interface",
        what: '"eth0" of shop/cart-2-4 holds 10.20.2.6 and has no interface',
        trusts: "the kernel, which has none",
        why: "a sandbox that has ended without a DEL leaves its address taken",
        todo: "let the address cool",
        repairable: true,
      },
    ],
  }));
  return source;
}
