import { execa } from "execa";
import { version } from "../../shared/version.ts";

/** Of what was measured, for the JSON lines. */
export async function versions(): Promise<Record<string, string>> {
  const packages = ["containernetworking-plugins", "openvswitch-switch"];
  const known = await Promise.all(packages.map(async (name) => [name, await debianVersion(name)] as const));
  return { pipette: version, bun: Bun.version, ...Object.fromEntries(known) };
}

async function debianVersion(name: string): Promise<string> {
  // biome-ignore lint/suspicious/noTemplateCurlyInString: the format is for dpkg-query
  const { stdout } = await execa("dpkg-query", ["-W", "-f", "${Version}", name], { reject: false });
  return stdout?.trim() || "unknown";
}
