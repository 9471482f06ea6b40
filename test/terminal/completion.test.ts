import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { beforeAll, describe, expect, test } from "vitest";
import { compileExecutables, executables } from "../conformance/plugin.ts";
import { ipamTerminal } from "../fakes/ipam-terminal.ts";
import { describeWith } from "../support/requires.ts";
import { scratchDir } from "../support/scratch-dir.ts";

const pipette = `${executables}/pipette`;

function run(command: string, args: readonly string[]): { status: number | null; stdout: string; stderr: string } {
  const env = {
    PATH: `${executables}:/usr/sbin:/usr/bin:/sbin:/bin`,
    HOME: "/nonexistent",
    TERM: "xterm",
    LANG: "C.UTF-8",
  };
  return spawnSync(command, args, { encoding: "utf8", timeout: 30_000, env });
}

/** The script for this shell, in a file. */
function scriptFor(shell: string, directory: string): string {
  const { status, stdout, stderr } = run(pipette, ["completion", shell]);
  expect([status, stderr]).toEqual([0, ""]);
  writeFileSync(`${directory}/script`, stdout);
  return `${directory}/script`;
}

beforeAll(compileExecutables);

const subcommands = "list show history map stats allocate release check gc import export serve".split(" ");

describeWith("bash", ["bash"], () => {
  /** What bash offers for the last of these words, after having sourced the script. */
  function offered(...words: readonly string[]): readonly string[] {
    using scratch = scratchDir();
    const script = scriptFor("bash", scratch.path);
    const ask = `set -u; source "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _pipette; printf '%s\\n' "\${COMPREPLY[@]}"`;
    const { status, stdout, stderr } = run("bash", ["--norc", "-c", ask, script, ...words]);
    expect([status, stderr]).toEqual([0, ""]);
    return stdout.split("\n").filter((line) => line !== "");
  }

  test.each([
    [
      ["pipette", ""],
      [
        "agent",
        "controller",
        "get",
        "status",
        "doctor",
        "why",
        "bundle",
        "trace",
        "log-level",
        "ipam",
        "nodes",
        "tenants",
        "policy",
        "services",
        "ui",
        "install",
        "uninstall",
        "completion",
        "version",
      ],
    ],
    [["pipette", "ipam", ""], subcommands],
    [["pipette", "version", "--l"], ["--licenses"]],
    [
      ["pipette", "ipam", "s"],
      ["show", "stats", "serve"],
    ],
    [
      ["pipette", "ipam", "list", "--s"],
      ["--state", "--sandbox"],
    ],
    [["pipette", "ipam", "list", "--json", "--n"], ["--network"]],
    [
      ["pipette", "ipam", "list", "--state", ""],
      ["allocated", "releasing", "cooling"],
    ],
    [["pipette", "ipam", "list", "--state", "=", "c"], ["cooling"]],
    [
      ["pipette", "ipam", "list", "--state", "="],
      ["allocated", "releasing", "cooling"],
    ],
    [["pipette", "ipam", "list", "--network", "l"], []],
    [
      ["pipette", "agent", "--c"],
      ["--config", "--check", "--cleanup"],
    ],
    [
      ["pipette", "completion", ""],
      ["bash", "zsh", "powershell"],
    ],
    [["pipette", "ipam", "map", "--conf", "/etc/host.c"], ["/etc/host.conf"]],
    [["pipette", "ipam", "map", "--data-dir", "/etc/alternat"], ["/etc/alternatives"]],
  ])("%j: %j", (words, wanted) => {
    expect(offered(...words)).toEqual(wanted);
  });

  test("what the node knows: networks, addresses, pods, sandboxes, where the line says", async () => {
    using node = ipamTerminal();
    await node.allocate("s1");
    await node.json("allocate", "--conf", node.conf, "--container", "s2", "--pod", "shop/web");
    const where = ["--data-dir", node.dataDir];
    const ask = (...words: readonly string[]) => offered(pipette, "ipam", ...words);
    expect(ask("list", ...where, "--network", "")).toEqual(["blue"]);
    expect(ask("list", "--conf", "=", node.conf, "--network", "=", "b")).toEqual(["blue"]);
    expect(ask("list", ...where, "--pod", "shop")).toEqual(["shop/web"]);
    expect(ask("list", ...where, "--sandbox", "")).toEqual(["s1", "s2"]);
    expect(ask("release", ...where, "10.")).toEqual(["10.1.0.2", "10.1.0.3"]);
    expect(ask("release", "--container", "s")).toEqual([]);
    expect(ask("show", ...where, "s")).toEqual(["s1", "s2", "shop/web"]);
    expect(ask("show", ...where, "fd")).toEqual(["fd00:1::2", "fd00:1::3"]);
    expect(ask("list", "--data-dir", `${node.path}/none`, "--network", "")).toEqual([]);
  });

  test("a name that a shell would take for more than a word is not offered", async () => {
    using node = ipamTerminal();
    await node.allocate("s1");
    await node.change((store) => {
      const [lease] = store.select({ by: "network" });
      if (lease === undefined) throw new Error("There is no lease");
      store.put({ ...lease, pod: { namespace: "x", name: "$(touch /tmp/pt-was-here)", uid: "" } });
    });
    expect(offered(pipette, "ipam", "list", "--data-dir", node.dataDir, "--pod", "")).toEqual(["default/s1"]);
  });

  test("the function is bound to the program", () => {
    using scratch = scratchDir();
    const script = scriptFor("bash", scratch.path);
    expect(run("bash", ["--norc", "-c", 'source "$0"; complete -p pipette', script]).stdout).toBe(
      "complete -F _pipette pipette\n",
    );
  });
});

describeWith("zsh", ["zsh"], () => {
  /** What stands on the screen of an interactive zsh after this was typed and Tab pressed. */
  function screen(typed: string): string {
    using scratch = scratchDir();
    const script = scriptFor("zsh", scratch.path);
    const ask = `
      zmodload zsh/zpty
      zpty z zsh -f -i
      zpty -w z "PROMPT=; unsetopt PROMPT_SP; LISTMAX=1000; autoload -Uz compinit; compinit -u -D; source $1; stty columns 200; echo REA''DY"
      zpty -r z out '*READY*'
      zpty -w -n z "$2"$'\\t'
      out=; integer quiet=0
      while (( quiet < 10 )); do
        sleep 0.1
        if zpty -r -t z part; then out+=$part; quiet=0; else (( quiet++ )); fi
      done
      zpty -d z
      print -r -- "$out"`;
    const { status, stdout, stderr } = run("zsh", ["-f", "-c", ask, "zsh", script, typed]);
    expect([status, stderr]).toEqual([0, ""]);
    return Bun.stripANSI(stdout).replaceAll("\r", "\n").replaceAll("\u0007", "");
  }

  test.each([
    ["pipette ipam list --st", "pipette ipam list --state "],
    ["pipette ipam list --state=c", "pipette ipam list --state=cooling "],
    ["pipette completion p", "pipette completion powershell "],
    ["pipette ipam map --data-dir /etc/alternat", "pipette ipam map --data-dir /etc/alternatives/"],
  ])("%j becomes %j", (typed, wanted) => {
    expect(screen(typed).trimEnd().split("\n").at(-1)?.trimEnd()).toBe(wanted.trimEnd());
  });

  test("what the node knows", async () => {
    using node = ipamTerminal();
    await node.json("allocate", "--conf", node.conf, "--container", "s2", "--pod", "shop/web");
    const last = (typed: string) => screen(typed).trimEnd().split("\n").at(-1)?.trimEnd();
    const line = `${pipette} ipam list --data-dir=${node.dataDir} --pod `;
    // Bound to the name that is typed without a path.
    const typed = line.replace(pipette, "pipette");
    expect(last(`${typed}sh`)).toBe(`${typed}shop/web`);
  });

  test("offers every command with what it does", () => {
    const shown = screen("pipette ipam ");
    for (const name of subcommands) expect(shown).toMatch(new RegExp(`^${name} +-- \\w`, "m"));
  });
});

describe("pipette completion", () => {
  test.each([
    [["completion"], "SHELL is missing, wanted bash, zsh or powershell"],
    [["completion", "fish"], 'SHELL is "fish", wanted bash, zsh or powershell'],
  ])("%j is refused", (args, wanted) => {
    expect(run(pipette, args)).toMatchObject({ status: 2, stdout: "", stderr: expect.stringContaining(wanted) });
  });
});
