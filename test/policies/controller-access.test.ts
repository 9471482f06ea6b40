import { copyFileSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { controllerAccess } from "../../agent/policies/mod.ts";
import { PolicyControllerDouble } from "../fakes/policy-controller.ts";
import { Certificates } from "../support/certificates.ts";
import { scratchDir } from "../support/scratch-dir.ts";

let stack: AsyncDisposableStack;
let directory: string;
let controller: PolicyControllerDouble;
let certificates: Certificates;

beforeEach(async () => {
  stack = new AsyncDisposableStack();
  directory = stack.use(scratchDir()).path;
  certificates = new Certificates(directory);
  for (const name of ["ca", "other"]) await certificates.make(name);
  await certificates.make("server", "ca", "127.0.0.1");
  const [cert = "", key = ""] = ["server.pem", "server.key"].map((file) =>
    readFileSync(certificates.file(file), "utf8"),
  );
  controller = stack.use(await PolicyControllerDouble.start({ cert, key }));
  controller.objects.set("/version", { major: "1" });
});
afterEach(() => stack.disposeAsync());

const at = (file: string): string => join(directory, file);

async function ask(connect: ReturnType<typeof controllerAccess>): Promise<string> {
  try {
    await using client = await connect();
    return String((await client.get({ path: "/version", action: "ask" }))["major"]);
  } catch (caught) {
    return (caught as Error).message;
  }
}

test("the controller is asked with the token of now, and believed by the authorities of now", async () => {
  writeFileSync(at("token"), "one\n");
  copyFileSync(at("other.pem"), at("now.pem"));
  const config = { controller: controller.url, serverName: "127.0.0.1", token: at("token"), ca: at("now.pem") };
  const connect = controllerAccess(config, {});
  expect(await ask(connect)).toContain("is not trusted");
  expect(controller.authorizations).toEqual([]);
  copyFileSync(at("ca.pem"), at("now.pem"));
  expect(await ask(connect)).toBe("1");
  writeFileSync(at("token"), "two\n");
  expect(await ask(connect)).toBe("1");
  expect(controller.authorizations).toEqual(["Bearer one", "Bearer two"]);
  expect(await ask(controllerAccess({ ...config, serverName: "pipette-controller.kube-system.svc" }, {}))).toContain(
    "for another name",
  );
});

test("in a cluster it is found behind its Service, and its authorities in a ConfigMap", async () => {
  writeFileSync(at("token"), "pod's");
  const env = { KUBERNETES_SERVICE_HOST: "127.0.0.1", KUBERNETES_SERVICE_PORT: String(controller.port) };
  const connect = controllerAccess({ serverName: "127.0.0.1" }, env, { token: at("token"), ca: at("ca.pem") });
  expect(await ask(connect)).toContain("404");
  const slices = "/apis/discovery.k8s.io/v1/namespaces/kube-system/endpointslices";
  const endpoints = [
    { addresses: ["127.0.0.9"], conditions: { ready: false } },
    { addresses: ["127.0.0.1"], conditions: { ready: true } },
  ];
  controller.objects.set(slices, { items: [{ ports: [{ port: controller.port }], endpoints: endpoints.slice(0, 1) }] });
  expect(await ask(connect)).toContain("no endpoint that is ready");
  controller.objects.set(slices, { items: [{ ports: [{ port: controller.port }], endpoints }] });
  const configMap = "/api/v1/namespaces/kube-system/configmaps/pipette-controller-ca";
  controller.objects.set(configMap, { data: {} });
  expect(await ask(connect)).toContain('has no "ca.crt"');
  controller.objects.set(configMap, { data: { "ca.crt": readFileSync(at("ca.pem"), "utf8") } });
  expect(await ask(connect)).toBe("1");
  expect(new Set(controller.authorizations)).toEqual(new Set(["Bearer pod's"]));
  expect(controller.asked).toContain(`${slices}?labelSelector=kubernetes.io%2Fservice-name%3Dpipette-controller`);
});
