import { delimiter } from "node:path";
import { parseJson } from "../schema/json.ts";
import { isObject } from "../schema/json-fields.ts";
import { bearer, type Credentials, type TlsMaterial } from "./access.ts";
import { pathFrom, wrong } from "./kubeconfig.ts";
import { type ApiObject, listIn, mapIn, textIn } from "./resource.ts";

const versions = ["client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"];
/** Generous, because some plugins ask a person or a remote server. */
const pluginMs = 60_000;
const maxAnswerBytes = 1024 * 1024;
/** A token that expires within this time may expire while the request is under way. */
const earlyMs = 10_000;

/** Keys as in a kubeconfig file. */
export type ExecCluster = Readonly<Record<string, unknown>> & { readonly server: string };

export interface ExecSetting {
  /** The user's, for messages. */
  readonly name: string;
  /** The folder of the kubeconfig file, against which a command with a slash is resolved. */
  readonly folder: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cluster: ExecCluster;
}

interface Given extends Pick<TlsMaterial, "cert" | "key"> {
  readonly authorization?: string;
  /** In milliseconds of the epoch; absent: until the server refuses it. */
  readonly expires?: number;
}

/** Credentials of an exec plugin (ExecCredential): run when they are needed, and kept until they expire. */
export class ExecCredentials implements Credentials {
  readonly #command: readonly string[];
  readonly #env: Readonly<Record<string, string | undefined>>;
  readonly #user: string;
  readonly #version: string;
  #given: Given | undefined;
  #asking: Promise<Given> | undefined;

  /** @throws {CniError} code 7 */
  constructor(said: unknown, { name, folder, env, cluster }: ExecSetting) {
    const exec = isObject(said) ? said : {};
    const command = textIn(exec, "command");
    const version = textIn(exec, "apiVersion") ?? "";
    if (command === undefined) throw wrong(`user "${name}" has an "exec" without a "command"`);
    if (!versions.includes(version))
      throw wrong(`user "${name}" has an "exec" of apiVersion "${version}", wanted "${versions[0]}"`);
    const args = listIn(exec, "args").filter((arg) => typeof arg === "string");
    // A bare name is looked for in PATH.
    this.#command = [/[/\\]/.test(command) ? pathFrom(folder, command) : command, ...args];
    const spec = { interactive: false, ...(exec["provideClusterInfo"] === true ? { cluster } : {}) };
    const info = { apiVersion: version, kind: "ExecCredential", spec };
    this.#env = { ...env, ...variablesOf(exec), KUBERNETES_EXEC_INFO: JSON.stringify(info) };
    this.#user = name;
    this.#version = version;
  }

  async authorization(): Promise<string | undefined> {
    return (await this.#current()).authorization;
  }

  async certificate(): Promise<Pick<TlsMaterial, "cert" | "key">> {
    const { cert, key } = await this.#current();
    return { ...(cert === undefined ? {} : { cert }), ...(key === undefined ? {} : { key }) };
  }

  async renew(): Promise<boolean> {
    this.#given = undefined;
    await this.#current();
    return true;
  }

  #current(): Promise<Given> {
    const given = this.#given;
    if (given !== undefined && (given.expires ?? Infinity) - earlyMs > Date.now()) return Promise.resolve(given);
    // Concurrent requests share one run of the plugin.
    this.#asking ??= this.#ask().finally(() => {
      this.#asking = undefined;
    });
    return this.#asking;
  }

  async #ask(): Promise<Given> {
    const fail = (is: string): Error => new Error(`the plugin of user "${this.#user}" (${this.#command[0]}) ${is}`);
    let child: Bun.Subprocess<"ignore", "pipe", "ignore">;
    try {
      const options = { stdin: "ignore", stdout: "pipe", stderr: "ignore", timeout: pluginMs } as const;
      child = Bun.spawn([...this.#command], { ...options, env: this.#env, maxBuffer: maxAnswerBytes });
    } catch (caught) {
      throw fail(
        `cannot be started (${(caught as { readonly code?: unknown }).code}), wanted it in ${pathText(this.#env)}`,
      );
    }
    const text = await new Response(child.stdout).text();
    const status = await child.exited;
    // Its stderr is not quoted, because it may contain a secret.
    if (child.signalCode !== null)
      throw fail(`was ended by ${child.signalCode}, wanted an answer within ${pluginMs} ms`);
    if (status !== 0) throw fail(`exited with status ${status}`);
    const given = this.#read(text);
    if (typeof given === "string") throw fail(given);
    this.#given = given;
    return given;
  }

  #read(text: string): Given | string {
    let answer: ApiObject;
    try {
      const value = parseJson(text);
      answer = isObject(value) ? value : {};
    } catch {
      return "did not answer in JSON";
    }
    if (answer["kind"] !== "ExecCredential" || answer["apiVersion"] !== this.#version)
      return `did not answer an ExecCredential of "${this.#version}"`;
    const status = mapIn(answer, "status");
    const [token, cert, key] = ["token", "clientCertificateData", "clientKeyData"].map((name) => textIn(status, name));
    if (token === undefined && (cert === undefined || key === undefined))
      return "gave neither a token nor a certificate";
    const expires = Date.parse(textIn(status, "expirationTimestamp") ?? "");
    return {
      ...(token === undefined ? {} : { authorization: bearer(token, `the plugin of user "${this.#user}"`) }),
      ...(cert === undefined ? {} : { cert }),
      ...(key === undefined ? {} : { key }),
      ...(Number.isNaN(expires) ? {} : { expires }),
    };
  }
}

function variablesOf(exec: ApiObject): Record<string, string> {
  const found: Record<string, string> = {};
  for (const variable of listIn(exec, "env")) {
    const { name, value } = isObject(variable) ? variable : {};
    if (typeof name === "string" && typeof value === "string") found[name] = value;
  }
  return found;
}

const pathText = (env: Readonly<Record<string, string | undefined>>): string =>
  `PATH (${(env["PATH"] ?? "").split(delimiter).slice(0, 20).join(delimiter)})`;
