import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { scratchDir } from "../../test/support/scratch-dir.ts";
import { mergeKubeconfigs } from "./kubeconfig.ts";
import { accessOf, kubeconfigAccess } from "./kubeconfig-access.ts";

const one = (user: object, cluster: object = {}) => ({
  "current-context": "here",
  contexts: [{ name: "here", context: { cluster: "c", user: "u", namespace: "ns" } }],
  clusters: [{ name: "c", cluster: { server: "https://api:6443", ...cluster } }],
  users: [{ name: "u", user }],
});
const merged = (...documents: readonly unknown[]) =>
  mergeKubeconfigs(documents.map((document, i) => ({ path: `/etc/${i}/config`, text: JSON.stringify(document) })));
const base64 = (text: string): string => Buffer.from(text).toString("base64");

test("of several files the first that says something counts, and paths start at their file", async () => {
  using scratch = scratchDir();
  const at = (name: string): string => join(scratch.path, name);
  writeFileSync(at("token"), "from-file\n");
  writeFileSync(at("a"), "current-context: two\ncontexts:\n- {name: two, context: {cluster: c2, user: u2}}\n");
  writeFileSync(
    at("b"),
    JSON.stringify({
      "current-context": "one",
      contexts: [
        { name: "two", context: { cluster: "wrong" } },
        { name: "one", context: { cluster: "c2" } },
      ],
      clusters: [{ name: "c2", cluster: { server: "https://two:6443" } }],
      users: [{ name: "u2", user: { tokenFile: "token" } }],
    }),
  );
  const env = { KUBECONFIG: [at("a"), at("missing"), at("b")].join(":") };
  const access = await kubeconfigAccess({ env });
  expect([access.server, await access.credentials.authorization()]).toEqual(["https://two:6443", "Bearer from-file"]);
  writeFileSync(at("token"), "rotated");
  expect(await access.credentials.authorization()).toBe("Bearer rotated");
  const other = await kubeconfigAccess({ env, context: "one" });
  expect(await other.credentials.authorization()).toBeUndefined();
  await expect(kubeconfigAccess({ env, context: "three" })).rejects.toThrow(
    'has no context "three", wanted one of those that it has: "two", "one"',
  );
  await expect(kubeconfigAccess({ env, file: at("missing") })).rejects.toThrow("cannot be read (ENOENT)");
  await expect(kubeconfigAccess({ env: { HOME: scratch.path } })).rejects.toThrow("wanted --kubeconfig, KUBECONFIG");
});

test("certificates inline and in files, names, proxies and namespaces", async () => {
  using scratch = scratchDir();
  writeFileSync(join(scratch.path, "ca.crt"), "a CA");
  const cluster = {
    "certificate-authority": join(scratch.path, "ca.crt"),
    "tls-server-name": "api.internal",
    "proxy-url": "http://p:1",
  };
  const user = { "client-certificate-data": base64("a cert"), "client-key-data": base64("a key") };
  const access = accessOf(merged(one(user, cluster)), {});
  expect(access).toMatchObject({ proxy: "http://p:1", namespace: "ns" });
  expect(await access.tls()).toEqual({ ca: "a CA", cert: "a cert", key: "a key", serverName: "api.internal" });
  const insecure = accessOf(merged(one({}, { "insecure-skip-tls-verify": true })), {});
  expect(await insecure.tls()).toEqual({ insecure: true });
  const both = { "insecure-skip-tls-verify": true, "certificate-authority-data": base64("x") };
  await expect(accessOf(merged(one({}, both)), {}).tls()).rejects.toThrow("wanted one of them");
  expect(await accessOf(merged(one({ username: "me", password: "p" })), {}).credentials.authorization()).toBe(
    `Basic ${base64("me:p")}`,
  );
});

test("what cannot be used is refused in a sentence that quotes no secret", async () => {
  const secret = "s3cr3t-t0k3n";
  const wrong: readonly [unknown, string][] = [
    [one({ "auth-provider": { name: "gcp", config: { token: secret } } }), 'wanted "exec" with a plugin'],
    [one({ exec: { apiVersion: "client.authentication.k8s.io/v1alpha1", command: "x" } }), "wanted"],
    [one({ exec: { apiVersion: "client.authentication.k8s.io/v1" } }), 'without a "command"'],
    [one({ token: `${secret}\n${secret}` }), 'user "u" holds no token'],
    [one({ token: secret }, { server: "api:6443" }), 'no "server" that is a URL'],
    [{ contexts: [] }, 'has no "current-context"'],
    [[secret], "holds no mapping"],
  ];
  for (const [document, is] of wrong) {
    expect(() => accessOf(merged(document), {})).toThrow(is);
    expect(() => accessOf(merged(document), {})).not.toThrow(secret);
  }
  const text = `users:\n- ${secret}: {\n`;
  expect(() => mergeKubeconfigs([{ path: "/etc/config", text }])).toThrow('"/etc/config" is no YAML');
});

test("an exec plugin is asked once, again when its token ends or is refused, and told what it wants to know", async () => {
  using scratch = scratchDir();
  const at = (name: string): string => join(scratch.path, name);
  writeFileSync(
    at("plugin"),
    `#!/bin/sh
echo x >> ${at("asked")}
printf '%s' "$KUBERNETES_EXEC_INFO" > ${at("info")}
echo "$SECRET" >&2
cat <<END
{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"token-$(wc -l < ${at("asked")})$1","clientCertificateData":"C","clientKeyData":"K"$(cat ${at("more")})}}
END
exit "\${STATUS:-0}"
`,
  );
  chmodSync(at("plugin"), 0o755);
  writeFileSync(at("more"), "");
  const user = (env: readonly object[] = []) => ({
    exec: {
      apiVersion: "client.authentication.k8s.io/v1",
      command: "./plugin",
      args: ["-a"],
      env,
      provideClusterInfo: true,
    },
  });
  const accessWith = (env: readonly object[] = []) => {
    const config = mergeKubeconfigs([{ path: at("config"), text: JSON.stringify(one(user(env))) }]);
    return accessOf(config, { PATH: process.env["PATH"] });
  };
  const { credentials } = accessWith();
  const all = await Promise.all([credentials.authorization(), credentials.authorization()]);
  expect(all).toEqual(["Bearer token-1-a", "Bearer token-1-a"]);
  expect(await credentials.authorization()).toBe("Bearer token-1-a");
  expect(await credentials.certificate?.()).toEqual({ cert: "C", key: "K" });
  expect(JSON.parse(await Bun.file(at("info")).text())).toEqual({
    apiVersion: "client.authentication.k8s.io/v1",
    kind: "ExecCredential",
    spec: { interactive: false, cluster: { server: "https://api:6443" } },
  });
  writeFileSync(at("more"), `,"expirationTimestamp":"${new Date(Date.now() + 3000).toISOString()}"`);
  expect(await credentials.renew()).toBe(true);
  expect(await credentials.authorization()).toBe("Bearer token-3-a");
  const secret = "s3cr3t";
  const failing = accessWith([
    { name: "SECRET", value: secret },
    { name: "STATUS", value: "3" },
  ]).credentials;
  await expect(failing.authorization()).rejects.toThrow(/plugin of user "u" \(.*plugin\) exited with status 3/);
  await expect(failing.authorization()).rejects.not.toThrow(secret);
  writeFileSync(at("more"), "}");
  await expect(accessWith().credentials.authorization()).rejects.toThrow("did not answer in JSON");
  const none = { exec: { apiVersion: "client.authentication.k8s.io/v1", command: "no-such-plugin" } };
  await expect(accessOf(merged(one(none)), {}).credentials.authorization()).rejects.toThrow(
    "cannot be started (ENOENT)",
  );
});

test("where nothing names one, that of the home directory counts", async () => {
  using scratch = scratchDir();
  mkdirSync(join(scratch.path, ".kube"));
  writeFileSync(join(scratch.path, ".kube", "config"), JSON.stringify(one({ token: "t" })));
  for (const more of [{}, { KUBECONFIG: "" }, { KUBECONFIG: ":" }])
    expect((await kubeconfigAccess({ env: { HOME: scratch.path, ...more } })).server).toBe("https://api:6443");
});
