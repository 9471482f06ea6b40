import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { type Client, credentials, loadPackageDefinition, type ServiceError } from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ServiceHome, serviceConf } from "../ipam/service-process.ts";
import { describeWith } from "../support/requires.ts";
import { compileGoPrograms, goNeeds } from "./go-programs.ts";

/** `pipette ipam serve` as programs of others call it: by the proto files' text, with libraries that are not ours. */

interface Answer {
  readonly code: number;
  readonly message: string;
  readonly answer: unknown;
}

/** One call by its name in `go/ipam/main.go`, with that program's arguments. */
type Call = (name: string, ...args: readonly string[]) => Promise<Answer>;

const conf = (more: object = {}): string => JSON.stringify({ ...serviceConf, name: "interop", ...more });

let home: ServiceHome;
beforeAll(async () => {
  home = new ServiceHome();
  await home.start();
});
afterAll(() => home[Symbol.asyncDispose]());

const proto = (name: string): string => new URL(`../../shared/proto/${name}`, import.meta.url).pathname;

/** grpc-js with stubs that proto-loader makes of the text. */
function javascriptCall(): Call {
  const options = { keepCase: true, longs: Number, defaults: false } as const;
  const loaded = loadPackageDefinition(loadSync([proto("pipette.proto"), proto("health.proto")], options));
  // biome-ignore lint/suspicious/noExplicitAny: made at run time
  const { pipette, grpc } = loaded as any;
  const target = `unix:${home.socket}`;
  const ipam = new pipette.v1.Ipam(target, credentials.createInsecure());
  const health = new grpc.health.v1.Health(target, credentials.createInsecure());
  afterAll(() => {
    for (const client of [ipam, health]) (client as Client).close();
  });
  const attachment = (network: string | undefined, id: string | undefined) => ({
    network,
    container_id: id,
    ifname: "eth0",
  });
  const unary = (client: Client, method: string, request: object): Promise<Answer> =>
    new Promise((resolve) => {
      const deadline = { deadline: Date.now() + 20_000 };
      Reflect.get(client, method).call(client, request, deadline, (error: ServiceError | null, answer: unknown) =>
        resolve({ code: error?.code ?? 0, message: error?.details ?? "", answer }),
      );
    });
  const streamed = async (client: Client, method: string, request: object, most: number): Promise<unknown[]> => {
    const call = Reflect.get(client, method).call(client, request);
    const answers: unknown[] = [];
    for await (const answer of call) if (answers.push(answer) === most) break;
    return answers;
  };
  return async (name, a, b, ...more) => {
    switch (name) {
      case "allocate":
        return unary(ipam, "Allocate", {
          container_id: a,
          ifname: "eth0",
          network_configuration: Buffer.from(b ?? ""),
        });
      case "release":
      case "get":
        return unary(ipam, name === "get" ? "Get" : "Release", attachment(a, b));
      case "check":
        return unary(ipam, "Check", {});
      case "stats":
        return unary(ipam, "Stats", { network: a });
      case "gc": {
        const attachments = [b, ...more].filter((id) => id !== undefined).map((id) => attachment(undefined, id));
        return unary(ipam, "Gc", { network: a, valid: { attachments } });
      }
      case "gc-unsaid":
        return unary(ipam, "Gc", { network: a });
      case "list": {
        const leases = await streamed(ipam, "List", { network: a }, Number.POSITIVE_INFINITY);
        return { code: 0, message: "", answer: leases.map((lease) => (lease as { address: string }).address) };
      }
      case "health":
        return unary(health, "Check", { service: a });
      case "watch":
        return { code: 0, message: "", answer: (await streamed(health, "Watch", { service: a }, 1))[0] };
      default:
        throw new Error(`No call "${name}"`);
    }
  };
}

/** A Go program; later releases of grpc-go name the socket otherwise than Debian's does. */
async function goCall(form: "url" | "path" | "encoded"): Promise<Call> {
  const program = (await compileGoPrograms()).ipam;
  return async (name, ...args) => {
    const { stdout } = await promisify(execFile)(program, [form, home.socket, name, ...args], { maxBuffer: 2 ** 24 });
    return JSON.parse(stdout);
  };
}

/** The same for every client: what each call answers, and how it fails. */
function theCalls(makeCall: () => Call | Promise<Call>): void {
  let call: Call;
  beforeAll(async () => {
    call = await makeCall();
  }, 240_000);

  test("allocate, get, list, release", async () => {
    const { code, answer } = await call("allocate", "a", conf());
    expect(code).toBe(0);
    const { leases, cni_result } = answer as { leases: { address: string }[]; cni_result: string | Uint8Array };
    const address = leases[0]?.address;
    expect(leases).toMatchObject([{ network: "interop", container_id: "a", ifname: "eth0", state: "allocated" }]);
    // Go's JSON has bytes in base 64.
    const text = typeof cni_result === "string" ? Buffer.from(cni_result, "base64") : cni_result;
    expect(JSON.parse(text.toString())).toMatchObject({ cniVersion: "1.1.0", ips: [{ address }] });
    expect(await call("get", "interop", "a")).toMatchObject({ code: 0, answer: { leases: [{ address }] } });
    expect(await call("list", "interop")).toMatchObject({ code: 0, answer: expect.arrayContaining([address]) });
    const released = { code: 0, answer: { released: [{ address, state: "cooling" }] } };
    expect(await call("release", "interop", "a")).toMatchObject(released);
  });

  test("gc, stats, check", async () => {
    for (const id of ["a", "b", "c"]) await call("allocate", id, conf());
    expect(await call("stats", "interop")).toMatchObject({
      answer: { networks: [{ network: "interop", allocated: 3 }] },
    });
    const { answer } = await call("gc", "interop", "b");
    const { removed } = answer as { removed: { container_id: string }[] };
    expect(removed.map((gone) => gone.container_id).sort()).toEqual(["a", "c"]);
    expect(await call("gc-unsaid", "interop")).toMatchObject({
      code: 3,
      message: expect.stringContaining('"valid" is missing'),
    });
    expect((await call("gc", "interop")).answer).toMatchObject({ removed: [{ container_id: "b" }] });
    const check = await call("check");
    expect([check.code, (check.answer as { findings?: unknown[] }).findings ?? []]).toEqual([0, []]);
  });

  test("a failure is a status with the sentence that a plugin gives", async () => {
    const range = { ipam: { ranges: [[{ subnet: "10.89.0.0/30" }]] }, name: "small" };
    expect((await call("allocate", "a", conf(range))).code).toBe(0);
    expect(await call("allocate", "b", conf(range))).toMatchObject({
      code: 8,
      message: expect.stringMatching(
        /^Cannot allocate an address: range set "10\.89\.0\.1-10\.89\.0\.2" .* 0 of 1 addresses free, wanted at least 1/,
      ),
    });
    expect((await call("release", "small", "a")).code).toBe(0);
    expect(await call("get", "no/network", "a")).toMatchObject({
      code: 3,
      message: expect.stringContaining("no/network"),
    });
  });

  test("health by the standard protocol", async () => {
    const status = async (service: string): Promise<unknown> =>
      ((await call("health", service)).answer as { status: unknown }).status;
    expect([1, "SERVING"]).toContain(await status(""));
    expect([1, "SERVING"]).toContain(await status("pipette.v1.Ipam"));
    expect(await call("health", "pipette.v1.Node")).toMatchObject({ code: 5 });
    const watched = (await call("watch", "")).answer as { status: unknown };
    expect([1, "SERVING"]).toContain(watched.status);
  });
}

describe("grpc-js, by the text of the proto files", () => theCalls(javascriptCall));

describe.each(["url", "path", "encoded"] as const)("grpc-go, which names the socket in the form %j,", (form) => {
  describeWith("gets", goNeeds, () => theCalls(() => goCall(form)));
});
