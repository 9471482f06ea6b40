import type { HostProgram } from "./host-programs.ts";

const shown = (command: string): readonly string[] => [
  "powershell.exe",
  "-NoProfile",
  "-NonInteractive",
  "-Command",
  command,
];

/** What a node of Windows shows of its network. Not tried on a real one. */
export const windowsPrograms: readonly HostProgram[] = [
  { file: "system", line: ["cmd.exe", "/c", "ver"] },
  { file: "addresses", line: ["ipconfig.exe", "/all"] },
  { file: "routes", line: ["route.exe", "print"] },
  { file: "neighbours", line: ["arp.exe", "-a"] },
  { file: "adapters", line: shown("Get-NetAdapter -IncludeHidden | Format-List") },
  { file: "hns-networks", line: shown("Get-HnsNetwork | ConvertTo-Json -Depth 8") },
  { file: "hns-endpoints", line: shown("Get-HnsEndpoint | ConvertTo-Json -Depth 8") },
  { file: "hns-policies", line: shown("Get-HnsPolicyList | ConvertTo-Json -Depth 8") },
  { file: "service", line: ["sc.exe", "query", "pipette-agent"] },
];
