import { runBudgets } from "./bench-program.ts";
import { measureEncryption, measureIpsec } from "./encryption/measure-encryption.ts";

const usage = `Usage: npm run bench:encryption [-- --quick] [-- --json FILE]

Measures pods of two nodes that encrypt by WireGuard, and then by IPsec, against those of two that do not, in turn, with
Open vSwitch in user space and, where the kernel has no WireGuard, wireguard-go; ESP is strongSwan's own. Then both nodes
take new keys of WireGuard while their pods talk, and lost packets are counted; and they get new secrets of IPsec. Exit
status 1 where a packet is lost by keys of WireGuard. PIPETTE_SOAK_MINUTES has keys, and then secrets, change for so long
at least.

  --quick       few rounds: the figures are rough
  --json FILE   appends one JSON line per measure, with date, machine and versions
`;

process.exitCode = await runBudgets(usage, async ({ quick, progress }) => {
  const setting = {
    rounds: quick ? 3 : 15,
    bytes: 64 * 1024 ** 2,
    questions: 500,
    rotations: quick ? 2 : 10,
    soakMs: Number(process.env["PIPETTE_SOAK_MINUTES"] ?? 0) * 60_000,
    progress,
  };
  return [...(await measureEncryption(setting)), ...(await measureIpsec(setting))];
});
