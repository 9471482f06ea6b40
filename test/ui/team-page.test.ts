import { afterEach, beforeEach, expect, test } from "vitest";
import { parseCidr } from "../../shared/net/ip.ts";
import { EventCutter } from "../../ui/stream/sse.ts";
import type { Change, Frame } from "../../ui/stream/wire.ts";
import { eventually } from "../support/eventually.ts";
import { describeWith } from "../support/requires.ts";
import { generatedNodes } from "./generated-documents.ts";
import { GeneratedSource } from "./generated-source.ts";
import { ServedTeam, viewerRights } from "./served-team.ts";

describeWith("the page for a team", ["openssl"], () => {
  let source: GeneratedSource;
  let team: ServedTeam;
  let token: string;

  beforeEach(async () => {
    source = new GeneratedSource(generatedNodes(2, 3));
    const proxies = [parseCidr("127.0.0.0/8")].filter((each) => each !== undefined);
    team = await ServedTeam.of(source, { hosts: ["pipette.example", "pipette.example:8443"], proxies });
    token = team.access.person("ann", viewerRights);
  });
  afterEach(() => team[Symbol.asyncDispose]());

  /** What a stream says, as it comes. */
  async function follow(who: Record<string, string>, topics: string, more: Record<string, string> = {}) {
    const stop = new AbortController();
    const query = new URLSearchParams({ topics, kept: topics });
    const options = { headers: { ...who, ...more }, signal: stop.signal, tls: { ca: team.ca } };
    const answer = await fetch(`${team.origin}/api/v1/events?${query}`, options);
    const told: { changes: Change[]; lastId: string; hasEnded: boolean } = { changes: [], lastId: "", hasEnded: false };
    const read = async (): Promise<void> => {
      const cutter = new EventCutter();
      const decoder = new TextDecoder();
      for await (const bytes of answer.body ?? [])
        for (const { id, data } of cutter.take(decoder.decode(bytes, { stream: true }))) {
          told.lastId = id;
          told.changes.push(...(JSON.parse(data) as Frame).changes);
        }
    };
    void read()
      .catch(() => undefined)
      .finally(() => {
        told.hasEnded = true;
      });
    return { status: answer.status, told, stop: () => stop.abort() };
  }

  const has = (changes: readonly Change[], topic: string): boolean =>
    changes.some((change) => change.topic === topic && "document" in change);

  test("a token of the cluster is exchanged for a session, which its cookie and its key open together", async () => {
    const answer = await team.signIn(token);
    expect(answer.status).toBe(200);
    const set = answer.headers.get("set-cookie") ?? "";
    const rules = /^__Host-pipette-\d+=[\w-]{43}; HttpOnly; Secure; SameSite=Strict; Path=\/$/;
    expect(set).toMatch(rules);
    const { key } = (await answer.json()) as { key: string };
    const cookie = set.split(";")[0] ?? "";
    const about = await team.ask("/api/v1/about", { cookie, "x-pipette-page": key });
    expect(await about.json()).toMatchObject({ person: "ann", isLive: true, commands: [] });
    const port = String(team.port);
    for (const [name, headers] of Object.entries<Record<string, string>>({
      "the cookie alone": { cookie },
      "the cookie with what asks to be let in": { cookie, "x-pipette-page": "1" },
      "the key alone": { "x-pipette-page": key },
      "the key with an invented cookie": { cookie: `__Host-pipette-${port}=${"x".repeat(43)}`, "x-pipette-page": key },
      "the token itself": { authorization: `Bearer ${token}` },
    })) {
      const refused = await team.ask("/api/v1/about", headers);
      expect([name, refused.status, refused.headers.get("www-authenticate")]).toEqual([name, 401, "Bearer"]);
    }
    expect(JSON.stringify(team.log)).not.toContain(token);
  });

  test.each([
    ["nobody's", "wrong", 403, /does not know this token/],
    ["no text", 7, 403, /this is no token/],
    ["with a line in it", "a\nb", 403, /this is no token/],
    ["too long", "x".repeat(17_000), 403, /this is no token/],
    ["longer than a body may be", "x".repeat(40_000), 413, /more than 32768 bytes/],
  ])("a token that is %s opens nothing", async (_, wrong, status, why) => {
    const answer = await team.signIn(wrong);
    expect([answer.status, ((await answer.json()) as { message: string }).message]).toEqual([
      status,
      expect.stringMatching(why),
    ]);
    expect(answer.headers.get("set-cookie")).toBeNull();
  });

  test("who may see nothing is told which right they lack; where the API server is silent nobody comes in", async () => {
    const nobody = team.access.person("bob", viewerRights.slice(0, 2));
    const answer = await team.signIn(nobody);
    expect([answer.status, ((await answer.json()) as { message: string }).message]).toEqual([
      403,
      '"bob" may not create serviceaccounts/token in namespace "kube-system": the role "pipette-viewer" lets them',
    ]);
    team.access.isSilent = true;
    expect((await team.signIn(token)).status).toBe(503);
  });

  test("after ten tokens in vain none is looked at any more from there, and others are let in", async () => {
    const from = (address: string) => ({ "x-forwarded-for": `8.8.8.8, ${address}` });
    for (let i = 0; i < 10; i++) expect((await team.signIn("wrong", from("203.0.113.7"))).status).toBe(403);
    const before = team.access.reviews;
    const refused = await team.signIn(token, from("203.0.113.7"));
    expect([refused.status, Number(refused.headers.get("retry-after"))]).toEqual([429, expect.any(Number)]);
    expect(team.access.reviews).toBe(before);
    expect((await team.signIn(token, from("203.0.113.8"))).status).toBe(200);
  });

  test("what nobody vouches for does not hide where requests come from", async () => {
    await using other = await ServedTeam.of(new GeneratedSource(generatedNodes(1, 1)));
    other.access.person("ann", viewerRights);
    for (let i = 0; i < 10; i++)
      expect((await other.signIn("wrong", { "x-forwarded-for": `203.0.113.${i}` })).status).toBe(403);
    expect((await other.signIn("wrong", { "x-forwarded-for": "203.0.113.99" })).status).toBe(429);
  });

  test.each([
    ["the host of somebody else", { host: "evil.example" }, 403],
    ["the host of somebody else on our port", { host: "evil.example:PORT" }, 403],
    ["our name with another in front", { host: "evil.pipette.example" }, 403],
    ["our name with another behind", { host: "pipette.example.evil" }, 403],
    ["our name on a port that was not named", { host: "pipette.example:9" }, 403],
    ["the public name", { host: "pipette.example" }, 401],
    ["the public name in capitals", { host: "PIPETTE.example:8443" }, 401],
    ["a forwarded port", { host: "localhost:12345" }, 401],
    ["the origin of somebody else", { origin: "https://evil.example" }, 403],
    ["the same host without TLS", { origin: "http://127.0.0.1:PORT" }, 403],
    ["another port of this machine", { origin: "https://127.0.0.1:1" }, 403],
    ["an origin that is none", { origin: "null" }, 403],
    ["a page of another site", { "sec-fetch-site": "cross-site" }, 403],
    ["a page of another port", { "sec-fetch-site": "same-site" }, 403],
  ])("%s: what of it is asked is refused, signing in too", async (_, headers, status) => {
    const who = await team.signedIn(token);
    const given = Object.fromEntries(
      Object.entries(headers).map(([name, text]) => [name, text.replace("PORT", String(team.port))]),
    );
    // Under another name the session is another one: cookies are of a host.
    expect((await team.ask("/api/v1/about", { ...who, ...given })).status).toBe(status);
    const signingIn = (await team.signIn(token, given)).status;
    expect(signingIn).toBe(status === 401 ? 200 : status);
  });

  test("a form of another page signs nobody in or out: it has no header, and no type that it needs", async () => {
    const who = await team.signedIn(token);
    expect((await team.ask("/api/v1/session", {}, { token })).status).toBe(403);
    const text = { "x-pipette-page": "1", "content-type": "text/plain" };
    expect((await team.ask("/api/v1/session", text, { token })).status).toBe(415);
    expect((await team.ask("/api/v1/leave", { cookie: who["cookie"] ?? "" }, {})).status).toBe(401);
    expect((await team.ask("/api/v1/about", who)).status).toBe(200);
  });

  test("browsers are to ask a public name by TLS alone, and other ports of this machine as before", async () => {
    const policy = async (host: string) => (await team.ask("/", { host })).headers.get("strict-transport-security");
    expect(await policy("pipette.example")).toBe("max-age=31536000");
    expect(await policy(`localhost:${team.port}`)).toBeNull();
    const { headers } = await team.ask("/api/v1/about");
    expect(headers.get("content-security-policy")).toMatch(/^default-src 'none'; script-src 'self'; style-src 'self'/);
    expect(headers.get("content-security-policy")).not.toContain("unsafe");
  });

  test("each signing in makes a new session, whatever the browser brings along", async () => {
    const chosen = `__Host-pipette-${team.port}=${"a".repeat(43)}`;
    const first = await team.signIn(token, { cookie: chosen });
    expect(first.headers.get("set-cookie")).not.toContain("aaaa");
    const who = await team.signedIn(token);
    const again = await team.signIn(token, { cookie: who["cookie"] ?? "" });
    expect(again.headers.get("set-cookie")?.split(";")[0]).not.toBe(who["cookie"]);
    // The key of one does not go with the cookie of the other.
    const mixed = {
      cookie: again.headers.get("set-cookie")?.split(";")[0] ?? "",
      "x-pipette-page": who["x-pipette-page"] ?? "",
    };
    expect((await team.ask("/api/v1/about", mixed)).status).toBe(401);
  });

  test("who signs out is out, with every stream; the fifth browser of a person ends their first, and nobody else's", async () => {
    const bob = await team.signedIn(team.access.person("bob", viewerRights));
    const first = await team.signedIn(token);
    const stream = await follow(first, "*/node");
    const answer = await team.ask("/api/v1/leave", first, {});
    expect(answer.headers.get("set-cookie")).toMatch(/^__Host-pipette-\d+=; Max-Age=0; HttpOnly; Secure/);
    await eventually(() => stream.told.hasEnded, "the stream to end");
    expect((await team.ask("/api/v1/about", first)).status).toBe(401);
    const browsers = [];
    for (let i = 0; i < 5; i++) browsers.push(await team.signedIn(token));
    const known = await Promise.all(browsers.map(async (who) => (await team.ask("/api/v1/about", who)).status));
    expect(known).toEqual([401, 200, 200, 200, 200]);
    expect((await team.ask("/api/v1/about", bob)).status).toBe(200);
  });

  test("one person opens no more streams than a browser has tabs", async () => {
    const who = await team.signedIn(token);
    const streams = await Promise.all(Array.from({ length: 32 }, () => follow(who, "node-1/node")));
    expect(streams.map(({ status }) => status)).toEqual(streams.map(() => 200));
    expect((await follow(who, "node-1/node")).status).toBe(429);
    streams[0]?.stop();
    await eventually(async () => (await follow(who, "node-1/node")).status === 200, "room");
  });

  test("two people at once see what each of them may", async () => {
    const agentOf = (node: string): string =>
      `get pods/proxy in namespace "kube-system" "https:agent-of-${node}:10352"`;
    const bob = await team.signedIn(team.access.person("bob", [...viewerRights.slice(0, 3), agentOf("node-2")]));
    const ann = await team.signedIn(token);
    const [annSees, bobSees] = [await follow(ann, "cluster,*/pods"), await follow(bob, "cluster,*/pods")];
    await eventually(
      () => has(annSees.told.changes, "node-1/pods") && has(annSees.told.changes, "node-2/pods"),
      "ann's",
    );
    await eventually(() => has(bobSees.told.changes, "node-2/pods"), "bob's");
    const refused = () => bobSees.told.changes.find((change) => change.topic === "node-1/pods" && "fault" in change);
    await eventually(() => refused() !== undefined, "the refusal");
    expect(refused()).toMatchObject({ fault: '"bob" may not get pods/proxy in namespace "kube-system"' });
    expect(has(bobSees.told.changes, "node-1/pods")).toBe(false);
    expect(JSON.stringify(bobSees.told.changes)).not.toContain("web-1-");
  });

  test("a question of many is asked once", async () => {
    const who = await Promise.all(["a", "b", "c"].map((name) => team.signedIn(team.access.person(name, viewerRights))));
    const streams = await Promise.all(who.map((each) => follow(each, "node-1/pods")));
    for (const { told } of streams) await eventually(() => has(told.changes, "node-1/pods"), "the document");
    await eventually(() => source.waiting > 0, "a question that waits");
    await Bun.sleep(1_000);
    expect(source.waiting).toBe(1);
    source.change("node-1", "pods", (before) => ({ ...before, pods: before.pods.slice(1) }));
    for (const { told } of streams)
      await eventually(() => told.changes.some((change) => "steps" in change), "the change");
  });

  test("who loses a right no longer has what it gave, in an open page and in one that comes back", async () => {
    const who = await team.signedIn(token);
    const { told, stop } = await follow(who, "node-1/pods");
    await eventually(() => has(told.changes, "node-1/pods"), "the document");
    await eventually(() => source.waiting > 0, "a question that waits");
    const before = told.lastId;
    team.access.rights.set("ann", viewerRights.slice(0, 3));
    await eventually(() => told.changes.some((change) => "gone" in change), "the document to go", 20_000);
    stop();
    const back = await follow(who, "node-1/pods", { "last-event-id": before });
    await eventually(() => back.told.changes.some((change) => "fault" in change), "the reason");
    expect(back.told.changes[0]).toMatchObject({ topic: "node-1/pods", gone: true });
    expect(JSON.stringify(back.told.changes)).not.toContain("web-1-");
    team.access.rights.set("ann", viewerRights);
    await eventually(() => has(back.told.changes, "node-1/pods"), "the document again", 40_000);
  });

  test("an account that is gone ends its sessions, and the streams in them", async () => {
    const who = await team.signedIn(token);
    const { told } = await follow(who, "node-1/pods");
    await eventually(() => has(told.changes, "node-1/pods"), "the document");
    team.access.tokens.delete(token);
    await eventually(() => told.hasEnded, "the stream to end", 30_000);
    expect((await team.ask("/api/v1/about", who)).status).toBe(401);
    const why = "the API server no longer knows the account or its token";
    expect(team.log).toContainEqual(expect.objectContaining({ message: "a session of the page has ended", why }));
  });

  test("a session ends with its token", async () => {
    const claims = new TextEncoder()
      .encode(JSON.stringify({ exp: Date.now() / 1000 + 1.5 }))
      .toBase64({ alphabet: "base64url" });
    const who = await team.signedIn(team.access.person("ann", viewerRights, `e30.${claims}.x`));
    expect((await team.ask("/api/v1/about", who)).status).toBe(200);
    await eventually(async () => (await team.ask("/api/v1/about", who)).status === 401, "the end", 20_000);
  });
});
