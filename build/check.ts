import { checks, runCheck } from "./checks.ts";

/** `npm run check`: types, lint, unused code, and the repository's own rules. */
const tidy = {
  name: "the repository's own rules (tidy)",
  command: [process.execPath, "--bun", `${import.meta.dir}/../node_modules/.bin/vitest`, "run", "test/tidy"],
};
let failed = 0;
for (const check of [...checks, tidy]) {
  const outcome = await runCheck(check);
  console.log(`${outcome.ok ? "ok  " : "FAIL"} ${check.name} (${outcome.seconds.toFixed(1)} s)`);
  if (!outcome.ok) {
    failed++;
    console.log(outcome.output);
  }
}
process.exit(failed === 0 ? 0 : 1);
