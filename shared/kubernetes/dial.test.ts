import { expect, test } from "vitest";
import { proxyFor } from "./dial.ts";

const proxied = (server: string, env: Record<string, string>, own?: string) =>
  proxyFor(new URL(server), env, own)?.host;

test.each<[string, string, Record<string, string>, string | undefined]>([
  ["none", "https://api:6443", {}, undefined],
  ["HTTPS_PROXY", "https://api:6443", { HTTPS_PROXY: "http://p:3128" }, "p:3128"],
  ["https_proxy", "https://api:6443", { https_proxy: "p:3128" }, "p:3128"],
  ["the other scheme's", "https://api:6443", { HTTP_PROXY: "http://p:3128" }, undefined],
  ["HTTP_PROXY without TLS", "http://api:8001", { HTTP_PROXY: "http://p:3128" }, "p:3128"],
  ["never this machine", "https://localhost:6443", { HTTPS_PROXY: "http://p:3128" }, undefined],
  ["nor its addresses", "https://127.1.2.3:6443", { HTTPS_PROXY: "http://p:3128" }, undefined],
  ["nor those of IPv6", "https://[::1]:6443", { HTTPS_PROXY: "http://p:3128" }, undefined],
])("%s: %s", (_, server, env, host) => {
  expect(proxied(server, env)).toBe(host);
});

test.each<[string, string, boolean]>([
  ["*", "https://api.example.org", true],
  ["example.org", "https://api.example.org", true],
  ["example.org", "https://example.org", true],
  ["example.org", "https://notexample.org", false],
  [".example.org", "https://api.example.org", true],
  [".example.org", "https://example.org", false],
  ["*.example.org", "https://api.example.org", true],
  ["other, API.example.org", "https://api.example.org", true],
  ["api:6443", "https://api:6443", true],
  ["api:443", "https://api", true],
  ["api:6443", "https://api:7443", false],
  ["10.0.0.0/8", "https://10.96.0.1:443", true],
  ["10.0.0.0/8", "https://11.0.0.1", false],
  ["10.96.0.1", "https://10.96.0.1", true],
  ["10.96.0.1:6443", "https://10.96.0.1:443", false],
  ["fd00::/8", "https://[fd00::1]:6443", true],
  ["fd00::1", "https://[fd00::1]:6443", true],
  ["[fd00::1]:6443", "https://[fd00::1]:6443", true],
  ["96.0.1", "https://10.96.0.1", false],
  ["", "https://api", false],
])("NO_PROXY %j, %s: %s", (NO_PROXY, server, isExempt) => {
  expect(proxied(server, { HTTPS_PROXY: "http://p:3128", NO_PROXY })).toBe(isExempt ? undefined : "p:3128");
});

test("a kubeconfig's own counts before all, and what we do not speak is refused without its password", () => {
  const env = { HTTPS_PROXY: "http://p:3128", NO_PROXY: "*" };
  expect(proxied("https://api", env, "http://own:1")).toBe("own:1");
  for (const own of ["socks5://user:secret@p:1080", "https://user:secret@p:443", "http://user:secret@:x"]) {
    expect(() => proxied("https://api", env, own)).toThrow("wanted http://HOST:PORT");
    expect(() => proxied("https://api", env, own)).not.toThrow("secret");
  }
});
