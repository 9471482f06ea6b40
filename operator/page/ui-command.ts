import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { delimiter, join, resolve } from "node:path";
import { isNodeName } from "../../shared/documents/mod.ts";
import { createLogger } from "../../shared/log.ts";
import { paths } from "../../shared/os/paths.ts";
import { show } from "../../shared/schema/json-fields.ts";
import { type Command, defineCommand } from "../../shared/terminal/command.ts";
import { exitStatus } from "../../shared/terminal/exit-status.ts";
import { printableLines } from "../../shared/terminal/printable.ts";
import type { TerminalIo } from "../../shared/terminal/terminal-io.ts";
import { SocketSource } from "../socket-source.ts";
import { openSource, type Way, wayOptions } from "../ways.ts";
import { openInBrowser } from "./browser-file.ts";
import { NodesOnly } from "./nodes-only.ts";
import { type CommandPlaces, type OwnProgram, PageCommands } from "./page-commands.ts";
import { pageFiles } from "./page-files.ts";
import { PageServer } from "./page-server.ts";

const action = "show the page";

const portRule = {
  wrong: (text: string) => (/^\d{1,5}$/.test(text) && Number(text) <= 65_535 ? undefined : `"${text}"`),
  wanted: "a port from 0 to 65535",
};

const nodeRule = {
  wrong: (text: string) => (isNodeName(text) ? undefined : show(text)),
  wanted: "the name of a node",
};

const options = {
  node: { value: "NAME", repeats: true, rule: nodeRule, help: "shows only this node (default: all)" },
  port: {
    value: "PORT",
    rule: portRule,
    help: "where the page is served on this machine's own addresses (default: any)",
  },
  "no-open": { help: "opens no browser, and only prints the address" },
  config: { value: "FILE", of: "file", help: "the agent's configuration, for what the page has traced and repaired" },
  ...wayOptions,
} as const;

/** @param program starts this program once more, for what the page has done */
export const uiCommand = (program: OwnProgram): Command =>
  defineCommand({
    action,
    about: `Shows the network in a browser: nodes and pods, addresses, the pipeline, policies, traces, what the doctor finds. The
page is served to this machine alone, and its address, which is printed, opens it in one browser once. What it shows is
what "pipette get" shows, and what it does is done by commands that it shows before. Ends with SIGTERM or SIGINT.`,
    options,
    exits: { 0: "it was ended", 1: "it cannot be served, or nobody can be asked" },
    run: async ({ options: given }, io) => {
      const opened = await openSource(given, given.node.length > 0 && given.socket === undefined, io);
      await using source = given.node.length === 0 ? opened : new NodesOnly(opened, given.node);
      const isNode = opened instanceof SocketSource;
      const logger = createLogger("warn", (line) => io.stderr(`${line}\n`));
      await using server = await PageServer.start({
        source,
        logger,
        files: await pageFiles(),
        commands: new PageCommands(program, placesOf(given, isNode, io.env, process.cwd())),
        port: Number(given.port ?? 0),
      });
      io.stdout(`${server.url}\n`);
      using _file = given["no-open"] ? undefined : openInBrowser(server.url, (word) => io.stderr(printableLines(word)));
      await ended();
      return exitStatus.done;
    },
  });

interface Given extends Way {
  readonly config: string | undefined;
}

/**
 * A bundle is asked, and nothing else. The page's commands run elsewhere than this one, so that files are named from the
 * root on.
 * @param folder that in which this command was called
 */
export function placesOf(
  { bundle, kubeconfig, context, config, socket, "agents-namespace": namespace }: Given,
  isNode: boolean,
  env: TerminalIo["env"],
  folder: string,
): CommandPlaces {
  if (bundle !== undefined) return {};
  const isNamed = kubeconfig !== undefined || context !== undefined;
  const isKnown = (env["KUBECONFIG"] ?? "") !== "" || env["KUBERNETES_SERVICE_HOST"] !== undefined;
  const hasCluster = isNamed || isKnown || existsSync(join(homedir(), ".kube", "config"));
  const cluster = [
    ...(kubeconfig === undefined ? [] : ["--kubeconfig", resolve(folder, kubeconfig)]),
    ...(context === undefined ? [] : ["--context", context]),
  ];
  const listed = (env["KUBECONFIG"] ?? "").split(delimiter).filter((path) => path !== "");
  const named = listed.map((path) => resolve(folder, path)).join(delimiter);
  return {
    ...(listed.length > 0 ? { env: { KUBECONFIG: named } } : {}),
    ...(hasCluster ? { cluster } : {}),
    agents: isNode
      ? ["--socket", socket === undefined ? paths.agentSocket : resolve(folder, socket)]
      : [...cluster, ...(namespace === undefined ? [] : ["--agents-namespace", namespace])],
    ...(isNode ? { node: config === undefined ? [] : ["--config", resolve(folder, config)] } : {}),
  };
}

function ended(): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  for (const signal of ["SIGTERM", "SIGINT"] as const) process.once(signal, () => resolve());
  return promise;
}
