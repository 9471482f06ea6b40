import { percentile } from "../../ui/parts/words.ts";
import { TestBrowser } from "./browser.ts";
import { generatedNodes } from "./generated-documents.ts";
import { GeneratedSource } from "./generated-source.ts";
import { longestTask } from "./main-thread.ts";
import { ServedPage } from "./served-page.ts";

/** `npm run bench:ui`: how long frames take in every view of 5,000 pods on 50 nodes, while pods come and go;
 * and how much of the processor's time the longest piece of the page's work, since frames also wait for whatever else runs. */

let turn = 0;
const seconds = Number(process.argv[2] ?? 5);
const source = new GeneratedSource(generatedNodes(50, 100));
await using served = await ServedPage.of(source);
await using browser = await TestBrowser.start();
const page = await browser.page({ viewport: { width: 1280, height: 900 } });
await page.goto(served.url);
await page.getByText("The network is fine").waitFor({ timeout: 60_000 });
console.log(`${"view".padEnd(24)}   frames   p50 ms   p99 ms  longest  task ms elements  heap MB`);
for (const view of ["overview", "map", "map?node=node-7", "addresses", "addresses?node=node-7", "policies", "doctor"]) {
  await page.goto(served.at(view));
  await Bun.sleep(2_000);
  const churn = setInterval(() => {
    const node = `node-${1 + (turn++ % 50)}`;
    source.change(node, "pods", (before) => ({ ...before, pods: [...before.pods.slice(1), before.pods[0]!] }));
  }, 50);
  const { ms: taskMs, result: times } = await longestTask(page, () =>
    page.evaluate<number[]>(`new Promise((resolve) => {
    const found = [];
    let last = performance.now();
    const end = last + ${seconds * 1000};
    const frame = (now) => {
      found.push(now - last);
      last = now;
      if (now < end) requestAnimationFrame(frame);
      else resolve(found);
    };
    requestAnimationFrame(frame);
  })`),
  );
  clearInterval(churn);
  const elements = await page.locator("*").count();
  const heap = await page.evaluate("performance.memory?.usedJSHeapSize ?? 0");
  const numbers = [percentile(times, 50) ?? 0, percentile(times, 99) ?? 0, Math.max(...times), taskMs].map((ms) =>
    ms.toFixed(1),
  );
  const cells = [times.length, ...numbers, elements, (Number(heap) / 1e6).toFixed(1)];
  console.log(view.padEnd(24), ...cells.map((cell) => String(cell).padStart(8)));
}
