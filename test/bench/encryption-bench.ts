import { runBudgets } from "./bench-program.ts";
import { measureEncryption } from "./encryption/measure-encryption.ts";

const usage = `Usage: npm run bench:encryption [-- --quick] [-- --json FILE]

Measures pods of two nodes that encrypt by WireGuard against those of two that do not, in turn, with Open vSwitch in user
space and, where the kernel has no WireGuard, wireguard-go. Then both nodes take new keys while their pods talk, and lost
packets are counted. Exit status 1 where one is lost.

  --quick       few rounds: the figures are rough
  --json FILE   appends one JSON line per measure, with date, machine and versions
`;

process.exitCode = await runBudgets(usage, async ({ quick, progress }) =>
  measureEncryption({
    rounds: quick ? 3 : 15,
    bytes: 64 * 1024 ** 2,
    questions: 500,
    rotations: quick ? 2 : 10,
    progress,
  }),
);
