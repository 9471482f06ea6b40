import { delimiter, resolve } from "node:path";
import { expect, test } from "vitest";
import { PageCommands } from "./page-commands.ts";
import { placesOf } from "./ui-command.ts";

const none = { bundle: undefined, kubeconfig: undefined, context: undefined, config: undefined };
const folder = resolve("/home/ann");

test("files are named from the root on, because the page's commands run in another folder", () => {
  const given = { ...none, kubeconfig: "kube/a", context: "one", config: "../agent.yaml", socket: "run/agent.sock" };
  expect(placesOf(given as never, true, {}, folder)).toEqual({
    cluster: ["--kubeconfig", resolve(folder, "kube/a"), "--context", "one"],
    node: ["--config", resolve(folder, "../agent.yaml")],
    agents: ["--socket", resolve(folder, "run/agent.sock")],
  });
  const absolute = resolve("/etc/kube");
  expect(placesOf({ ...none, kubeconfig: absolute } as never, false, {}, folder).cluster).toEqual([
    "--kubeconfig",
    absolute,
  ]);
});

test("so are those of KUBECONFIG, which the page's commands are started with", async () => {
  const KUBECONFIG = ["a", "", resolve("/etc/b")].join(delimiter);
  const places = placesOf(none as never, false, { KUBECONFIG }, folder);
  const wanted = { KUBECONFIG: [resolve(folder, "a"), resolve("/etc/b")].join(delimiter) };
  expect(places).toEqual({ cluster: [], agents: [], env: wanted });
  const started: unknown[] = [];
  const run = async (_: readonly string[], { env }: { readonly env?: object }) => {
    started.push(env);
    return { stdout: "{}", stderr: "", failure: "", status: 0 };
  };
  await new PageCommands({ run }, places).run({ name: "matrix", fields: {} });
  expect(started).toEqual([wanted]);
});
