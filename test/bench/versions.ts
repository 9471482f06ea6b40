import { execa } from "execa";
import { version } from "../../shared/version.ts";

/** Of what was measured, for the JSON lines. */
export async function versions(): Promise<Record<string, string>> {
  // biome-ignore lint/suspicious/noTemplateCurlyInString: the format is for dpkg-query
  const peer = await execa("dpkg-query", ["-W", "-f", "${Version}", "containernetworking-plugins"], { reject: false });
  return { pipette: version, bun: Bun.version, "containernetworking-plugins": peer.stdout?.trim() || "unknown" };
}
