import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { describeWith } from "../support/requires.ts";
import { ServiceHome } from "./service-process.ts";

const example = new URL("service-example.ts", import.meta.url).pathname;

describeWith("the client's example", ["linux"], () => {
  test("runs, as the document has it", async () => {
    const page = readFileSync(new URL("../../docs/ipam-service.md", import.meta.url), "utf8");
    expect(page).toContain(`\`\`\`ts\n${readFileSync(example, "utf8")}\`\`\`\n`);
    await using home = new ServiceHome();
    await home.start();
    const run = Bun.spawn([process.execPath, example], {
      env: { ...process.env, IPAM_SOCKET: home.socket },
      stdout: "pipe",
      stderr: "pipe",
    });
    const [out, err, status] = await Promise.all([run.stdout.text(), run.stderr.text(), run.exited]);
    expect([out, err, status]).toEqual(["10.1.0.2/16\n10.1.0.2/16 allocated 0123abcd\ncooling\n", "", 0]);
  });
});
