import { expect, test } from "vitest";
import { leftOut, Redactor } from "./redact.ts";

const jwt = `eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJzeXN0ZW0ifQ.c2lnbmF0dXJlLXNpZ25hdHVyZQ`;
const pem = "-----BEGIN EC PRIVATE KEY-----\nMHcCAQEEIB0x\nAwEHoUQDQgAE\n-----END EC PRIVATE KEY-----";

test.each([
  ["a token of a service account", `the server said ${jwt} is expired`, jwt],
  ["a key", `begin\n${pem}\nend`, "MHcCAQEEIB0x"],
  ["half a key, where a text was cut", pem.slice(0, 60), "MHcCAQEEIB0x"],
  ["a header", "authorization: Bearer abcdef0123456789", "abcdef0123456789"],
  ["a header in a sentence", "it sent Bearer abcdef0123456789 twice", "abcdef0123456789"],
  ["a password below a header that was cut", "401 for Bearer\npassword: swordfish77", "swordfish77"],
  ["a user in a URL", "endpoints: [https://root:hunter22@10.0.0.1:2379]", "hunter22"],
  ["a pre-shared key of Open vSwitch", 'options: {psk="swordfish77", remote_ip="10.0.0.2"}', "swordfish77"],
  ["the same by ovs-vsctl", "options:psk=swordfish77 options:remote_ip=10.0.0.2", "swordfish77"],
  ["a password in YAML", "  password: tr0ub4dor&3\n  name: x", "tr0ub4dor&3"],
  ["a quoted one with blanks", '{"clientSecret": "correct horse battery"}', "correct horse"],
  ["one in a line of a log within a line", '{"error":"{\\"token\\": \\"correct horse\\"}"}', "correct horse"],
  ["one with a quote in it", '{"token": "first\\"second", "x": 1}', "second"],
  ["a variable of the environment", "ETCD_PASSWORD=xyzzy-12345", "xyzzy-12345"],
  ["one with a comma", "password: abc,def", "def"],
  ["one of several words", "  - passphrase: correct horse", "horse"],
  ["a remark with several words", "# password = correct horse", "horse"],
  ["a variable with several words", "export ETCD_PASSWORD=correct horse", "horse"],
  ["a block", "token: |\n  first\n\n  horse\nname: x", "horse"],
  ["a folded block in a list", "- token: >-\n    horse\n  name: x", "horse"],
  ["one that goes on below", "token: first\n  horse\nname: x", "horse"],
  ["a list below", "tokens:\n- first\n- horse\nname: x", "horse"],
  ["a list", '{"tokens": ["first","horse"], "name": "x"}', "horse"],
  ["a list on several lines", '  "tokens": [\n    "fi]rst",\n    "horse"\n  ],', "horse"],
  ["a list in a line of a log", '{"error":"{\\"tokens\\": [\\"first\\",\\"horse\\"]}"}', "horse"],
  ["one in single quotes with one in it", "password: 'first''horse'", "horse"],
  ["a key that is assigned", `private_key=${pem}`, "AwEHoUQDQgAE"],
  ["CNI_ARGS", "CNI_ARGS=K8S_POD_NAME=a;MY_KEY=plugh-12345 next", "plugh-12345"],
])("of %s nothing is left", (_, text, secret) => {
  const redactor = new Redactor();
  const clean = redactor.text(text);
  expect(clean).not.toContain(secret);
  expect(clean).toContain(leftOut);
  expect(redactor.count).toBeGreaterThan(0);
});

test("what stands beside a secret stays", () => {
  const text = "a: 1\n  token: |\n    first\n\n    second\n  name: x\n# password: correct horse\n# was here\nb: 2";
  const redactor = new Redactor();
  expect(redactor.text(text)).toBe(
    `a: 1\n  token: "${leftOut}"\n  name: x\n# password: "${leftOut}"\n# was here\nb: 2`,
  );
  expect(redactor.count).toBe(2);
});

test("what is known to be secret is left out wherever it stands", () => {
  const redactor = new Redactor(["quite-a-secret\n", "ab"]);
  expect(redactor.text('x="quite-a-secret" quite-a-secrets abc')).toBe(`x="${leftOut}" ${leftOut}s abc`);
});

test("what is no secret stays as it is", () => {
  const texts = [
    'Cannot allocate an address: range set "10.1.0.0/29" has 0 of 5 addresses free; see https://example.org/a',
    "cookie=0x2a, table=20, priority=200 actions=resubmit(,30)",
    '{"verb":"ADD","container":"abc","args":"K8S_POD_NAME=a"}',
  ];
  for (const text of texts) expect(new Redactor().text(text)).toBe(text);
});

test("a document stays one, and loses what stands under a key that sounds secret", () => {
  const redactor = new Redactor();
  const document = {
    kind: "node",
    count: 3,
    ok: true,
    list: [{ "client-key-data": "abc", note: `Bearer ${"a".repeat(20)}` }],
  };
  expect(redactor.json(document)).toEqual({
    ...{ kind: "node", count: 3, ok: true },
    list: [{ "client-key-data": leftOut, note: `Bearer ${leftOut}` }],
  });
});

test("no text takes long, whatever it is made of", () => {
  const redactor = new Redactor();
  const hostile = [
    "token",
    "-----BEGIN ",
    "eyJ",
    "Bearer ",
    "a.b-",
    '\\"',
    "https://",
    "psk=",
    "\n",
    "tokens: [",
    'token: ["',
    'token: [\\"',
    "token:\n ",
    "- # ",
    "token-",
    "token: ''",
  ];
  for (const part of hostile) expect(redactor.text(part.repeat(20_000)).length).toBeGreaterThanOrEqual(0);
}, 30_000);
