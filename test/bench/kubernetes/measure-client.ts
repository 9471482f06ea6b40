import { createInterface } from "node:readline";
import { Readable } from "node:stream";
import { Certificates } from "../../support/certificates.ts";

export interface FollowFigures {
  readonly kind: string;
  readonly encoding: string;
  readonly objects: number;
  readonly wanted: number;
  /** From nothing to the whole list taken in; and the client's share of the processors. */
  readonly listMs: number;
  readonly listCpuMs: number;
  /** Changes heard in a burst, and how long that took. */
  readonly events: number;
  readonly watchMs: number;
  /** Of the whole process, at the most and with everything in it. */
  readonly peakBytes: number;
  readonly keptBytes: number;
}

export interface ClientRun {
  readonly counts: Readonly<Record<string, number>>;
  readonly events: number;
  readonly scratch: string;
}

const program = (name: string): string => new URL(name, import.meta.url).pathname;

/** Each kind in each encoding, every one by a process of its own, from a server that is another. */
export async function measureClient({ counts, events, scratch }: ClientRun): Promise<readonly FollowFigures[]> {
  const certificates = new Certificates(scratch);
  await certificates.make("ca");
  await certificates.make("server", "ca", "127.0.0.1");
  const { cert, key } = certificates.pair("server");
  const words = [program("replay-server.ts"), cert, key, JSON.stringify(counts), String(events)];
  const server = Bun.spawn([process.execPath, ...words], { stdout: "pipe", stderr: "inherit" });
  try {
    let port = "";
    for await (const line of createInterface(Readable.fromWeb(server.stdout))) {
      port = line;
      break;
    }
    const figures: FollowFigures[] = [];
    for (const [kind, count] of Object.entries(counts))
      for (const encoding of ["json", "protobuf"]) {
        const asked = [
          `https://127.0.0.1:${port}`,
          certificates.file("ca.pem"),
          kind,
          encoding,
          String(count),
          String(events),
        ];
        const child = Bun.spawn([process.execPath, program("follow-program.ts"), ...asked], {
          stdout: "pipe",
          stderr: "inherit",
          timeout: 300_000,
        });
        figures.push(JSON.parse(await new Response(child.stdout).text()) as FollowFigures);
      }
    return figures;
  } finally {
    server.kill("SIGKILL");
    await server.exited;
  }
}

const mb = (bytes: number): string => `${Math.round(bytes / 1e6)} MB`;

export const clientTable = (figures: readonly FollowFigures[]): string =>
  [
    "| objects | encoding | list | of it processor | events a second | memory, most | memory, kept |",
    "|---|---|---|---|---|---|---|",
    ...figures.map(({ kind, encoding, objects, listMs, listCpuMs, events, watchMs, peakBytes, keptBytes }) =>
      [
        `| ${objects} ${kind}`,
        encoding,
        `${(listMs / 1000).toFixed(1)} s`,
        `${(listCpuMs / 1000).toFixed(1)} s`,
        Math.round((events / watchMs) * 1000),
        mb(peakBytes),
        `${mb(keptBytes)} |`,
      ].join(" | "),
    ),
  ].join("\n");
