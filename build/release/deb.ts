import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { longestCarriedBytes, mark, readMark } from "../../agent/commands/install/executable-marks.ts";
import { directoriesOf, type TarEntry, tar } from "../../shared/archive/tar.ts";
import { linuxPaths } from "../../shared/os/paths.linux.ts";
import { gzip } from "../archive/deflate.ts";
import type { Architecture } from "../image/package-source.ts";
import type { FileEntry } from "./files.ts";
import type { Version } from "./version.ts";

/** A package for Debian and what descends from it, written as deb(5) says. */

export interface DebInputs {
  readonly root: string;
  readonly architecture: Architecture;
  readonly executable: Uint8Array;
  readonly version: Version;
  readonly texts: ReadonlyMap<string, Uint8Array>;
  readonly shipped: readonly FileEntry[];
}

/** Where runtimes look for plugins. */
const plugin = `${linuxPaths.cniBinDir}/pipette`;
const docDir = "usr/share/doc/pipette";

/** No /etc/pipette/agent.yaml: it is each node's own, and dpkg would offer to put a sample over it. */
function dataOf({ root, executable, texts, shipped, version }: DebInputs): readonly TarEntry[] {
  const file = (path: string, bytes: Uint8Array, mode = 0o644): TarEntry => ({ t: "file", path, mode, bytes });
  const changelog = `pipette (${version.full}) stable; urgency=medium

  * See the project's own history.

 -- ${maintainer}  ${new Date(version.time * 1000).toUTCString().replace("GMT", "+0000")}
`;
  // As they lie in the sources, so that their links lead somewhere; Debian's own name for samples is another.
  const documents = shipped.map(({ path, mode, bytes }) =>
    file(`${docDir}/${path.replace(/^conf\//, "examples/")}`, bytes, mode),
  );
  const small = smallProgramIn(executable);
  // One that carries no small program is the plugin itself.
  const whole = small === undefined ? plugin : linuxPaths.wholeProgram;
  const unit = readFileSync(join(root, "conf/pipette-agent.service"), "utf8");
  return [
    ...(small === undefined ? [] : [file(inPackage(plugin), small, 0o755)]),
    file(inPackage(whole), executable, 0o755),
    { t: "hardlink", path: inPackage(`${plugin}-ipam`), target: `./${inPackage(plugin)}` },
    { t: "link", path: "usr/bin/pipette", link: whole },
    file("usr/lib/systemd/system/pipette-agent.service", Buffer.from(unit.replaceAll(linuxPaths.wholeProgram, whole))),
    file(`${docDir}/changelog.gz`, gzip(Buffer.from(changelog), { highest: true })),
    file(`${docDir}/copyright`, Buffer.from(copyright)),
    { t: "link", path: `${docDir}/LICENSE`, link: "/usr/share/common-licenses/Apache-2.0" },
    { t: "link", path: `${docDir}/conf`, link: "examples" },
    file(`${docDir}/THIRD-PARTY.txt`, texts.get("THIRD-PARTY.txt") ?? new Uint8Array()),
    file("usr/share/lintian/overrides/pipette", Buffer.from(overrides)),
    ...documents,
  ];
}

const inPackage = (path: string): string => path.slice(1);

function smallProgramIn(executable: Uint8Array): Uint8Array | undefined {
  const bytes = Buffer.from(executable.buffer, executable.byteOffset, executable.byteLength);
  for (let at = bytes.indexOf(mark); at >= 0; at = bytes.indexOf(mark, at + 1)) {
    const text = bytes.subarray(at + mark.length, at + mark.length + longestCarriedBytes);
    const found = readMark(text);
    if (found.t === "carried") return found.program;
  }
  return undefined;
}

/** dpkg puts files in place in this order: no small program may come before its whole one. */
const order = (path: string): string => (dirname(`/${path}`) === dirname(linuxPaths.wholeProgram) ? "" : path);

const maintainer = "Pipette maintainers <maintainers@pipette.invalid>";

/** Debian's own form, with the licence's short notice; the whole text is in every Debian. */
const copyright = `Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: pipette

Files: *
Copyright: 2026 The Pipette authors
License: Apache-2.0
 On Debian systems the text of the Apache License, version 2.0, is in /usr/share/common-licenses/Apache-2.0.
 .
 THIRD-PARTY.txt, in this directory, names what else is in the executable.
`;

const overrides = `# The place that container runtimes look for plugins in.
pipette: dir-or-file-in-opt
# One executable that carries its program behind it; stripping would take that away.
pipette: unstripped-binary-or-object
# Bun's executable, which carries the program, is linked so.
pipette: embedded-library libjpeg *
pipette: hardening-no-pie *
pipette: hardening-no-relro *
`;

const control = ({ architecture, version }: DebInputs, kilobytes: number): string => `Package: pipette
Version: ${version.full}
Architecture: ${architecture}
Maintainer: ${maintainer}
Installed-Size: ${kilobytes}
Depends: libc6 (>= 2.17)
Recommends: nftables
Suggests: openvswitch-switch, containernetworking-plugins
Section: admin
Priority: optional
Description: pod network of a Kubernetes node
 CNI plugin, address allocator and node agent in one executable. It wires pods
 to a kernel bridge or to Open vSwitch, and gives them their addresses.
 .
 Nothing is started: write /etc/pipette/agent.yaml first, of which
 ${`/${docDir}/examples/agent.yaml`} is a sample.
`;

const scripts: Readonly<Record<string, string>> = {
  postinst: `#!/bin/sh
set -e
# An agent that runs goes on with the new executable; pods keep their network meanwhile. Nothing else is started.
if [ "$1" = configure ] && [ -d /run/systemd/system ]; then
  systemctl daemon-reload || true
  [ -z "$2" ] || systemctl try-restart pipette-agent.service || true
fi
`,
  prerm: `#!/bin/sh
set -e
# Without the executables nobody takes a pod's network down: refused while pods have addresses. The runtime's
# configuration goes with them, since every pod would fail by it.
if [ "$1" = remove ] && [ -x ${plugin} ]; then
  ${plugin} uninstall --no-service --dry-run >/dev/null
  [ ! -d /run/systemd/system ] || systemctl disable --now pipette-agent.service || true
  ${plugin} uninstall --no-service
fi
`,
  postrm: `#!/bin/sh
set -e
if [ "$1" = purge ]; then
  rm -rf /etc/pipette /var/lib/pipette
fi
if [ -d /run/systemd/system ]; then
  systemctl daemon-reload || true
fi
`,
};

export function debOf(inputs: DebInputs): Uint8Array<ArrayBuffer> {
  const files = [...dataOf(inputs)].sort((one, other) => (order(one.path) < order(other.path) ? -1 : 1));
  const all = [...directoriesOf(files.map(({ path }) => path)), ...files];
  const data = all.map((entry): TarEntry => ({ ...entry, path: `./${entry.path}` }));
  const kilobytes = files.reduce(
    (sum, entry) => sum + (entry.t === "file" ? Math.ceil(entry.bytes.length / 1024) : 1),
    0,
  );
  const contents = new Map(files.map((entry) => [`./${entry.path}`, entry]));
  const sums = files.flatMap((entry) => {
    const held = entry.t === "hardlink" ? contents.get(entry.target) : entry;
    if (held?.t !== "file") return [];
    return [`${createHash("md5").update(held.bytes).digest("hex")}  ${entry.path}\n`];
  });
  const member = (name: string, content: string, mode = 0o644): TarEntry => ({
    t: "file",
    path: `./${name}`,
    mode,
    bytes: Buffer.from(content),
  });
  const { time } = inputs.version;
  const controls = [
    member("control", control(inputs, kilobytes)),
    member("md5sums", sums.join("")),
    ...Object.entries(scripts).map(([name, content]) => member(name, content, 0o755)),
  ];
  return ar(
    [
      ["debian-binary", Buffer.from("2.0\n")],
      ["control.tar.gz", gzip(tar(controls, time))],
      ["data.tar.gz", gzip(tar(data, time))],
    ],
    time,
  );
}

/** An archive as ar(5) has it: members of a header of 60 bytes and an even number of bytes. */
function ar(members: readonly (readonly [string, Uint8Array])[], time: number): Uint8Array<ArrayBuffer> {
  const parts = members.flatMap(([name, bytes]) => {
    const fields = [name.padEnd(16), String(time).padEnd(12), "0".padEnd(6), "0".padEnd(6), "100644".padEnd(8)];
    const header = `${fields.join("")}${String(bytes.length).padEnd(10)}\`\n`;
    return [Buffer.from(header), bytes, ...(bytes.length % 2 === 1 ? [Buffer.from("\n")] : [])];
  });
  return Buffer.concat([Buffer.from("!<arch>\n"), ...parts]);
}
