import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { CniCode } from "../../../shared/errors.ts";
import { describeWith } from "../../../test/support/requires.ts";
import { scratchDir } from "../../../test/support/scratch-dir.ts";
import { controlPlaces } from "./control-places.ts";
import { openControl } from "./control-socket.ts";

/** A daemon that answers each request with this text, `ID` standing for the request's number. */
function serve(path: string, answer: string) {
  const heard: string[] = [];
  const listener = Bun.listen({
    unix: path,
    socket: {
      data: (socket, chunk) => {
        const text = new TextDecoder().decode(chunk);
        heard.push(text);
        if (answer === "") socket.end();
        else socket.write(answer.replace("ID", String((JSON.parse(text) as { id: number }).id)));
      },
    },
  });
  return { heard, [Symbol.dispose]: () => listener.stop(true) };
}

const ask = async (answer: string): Promise<string> => {
  using scratch = scratchDir();
  const path = join(scratch.path, "ovs-vswitchd.7.ctl");
  using _ = serve(path, answer);
  using control = await openControl([{ t: "unix", path }], "ask");
  return await control.ask("version", ["-v"], "ask");
};

test("beside the database: the running process' first, then what others have left", async () => {
  using scratch = scratchDir();
  const names = ["ovs-vswitchd.9.ctl", "ovs-vswitchd.10.ctl", "ovsdb-server.3.ctl", "db.sock", "ovs-vswitchd.x.ctl"];
  for (const name of names) writeFileSync(join(scratch.path, name), "");
  const at = (name: string) => ({ t: "unix", path: join(scratch.path, name) });
  const database = { t: "unix", path: join(scratch.path, "db.sock") } as const;
  expect(await controlPlaces(database)).toEqual([at("ovs-vswitchd.10.ctl"), at("ovs-vswitchd.9.ctl")]);
  writeFileSync(join(scratch.path, "ovs-vswitchd.pid"), "9\n");
  expect(await controlPlaces(database)).toEqual([at("ovs-vswitchd.9.ctl"), at("ovs-vswitchd.10.ctl")]);
});

test("on Windows a pipe beside the database's; of a database elsewhere nobody knows", async () => {
  const pipe = "\\\\.\\pipe\\C:openvswitchvarrunopenvswitch";
  expect(await controlPlaces({ t: "pipe", name: `${pipe}db.sock` })).toEqual([
    { t: "pipe", name: `${pipe}ovs-vswitchd.ctl` },
  ]);
  expect(await controlPlaces({ t: "tcp", host: "192.0.2.1", port: 6640 })).toEqual([]);
  expect(await controlPlaces({ t: "unix", path: "/nonexistent/db.sock" })).toEqual([]);
});

describeWith("a command for ovs-vswitchd", ["linux"], () => {
  test("has its answer, past what a killed one has left", async () => {
    using scratch = scratchDir();
    const [stale, path] = [join(scratch.path, "ovs-vswitchd.1.ctl"), join(scratch.path, "ovs-vswitchd.2.ctl")];
    writeFileSync(stale, "");
    using daemon = serve(path, '{"id":ID,"result":"two\\nlines","error":null}');
    using control = await openControl(
      [
        { t: "unix", path: stale },
        { t: "unix", path },
      ],
      "ask",
    );
    expect(await control.ask("version", ["-v"], "ask")).toBe("two\nlines");
    expect(JSON.parse(daemon.heard[0] ?? "")).toEqual({ id: 1, method: "version", params: ["-v"] });
  });

  test.each([
    [
      '{"id":ID,"result":null,"error":"br-no: unknown bridge\\n"}',
      CniCode.invalidConfig,
      "refuses: br-no: unknown bridge,",
    ],
    ['{"id":ID,"result":null,"error":{}}', CniCode.invalidConfig, "refuses: it does not say why"],
    ['{"id":ID,"result":{"a":1},"error":null}', CniCode.decode, "answers something that is no text"],
    ["Flow: ", CniCode.tryAgainLater, "is gone (a message begins with the byte 0x46)"],
    ["", CniCode.tryAgainLater, "is gone (the server has closed the connection)"],
  ])("is answered %j", async (answer, code, words) => {
    await expect(ask(answer)).rejects.toMatchObject({ code, message: expect.stringContaining(words) });
  });

  test("finds nobody", async () => {
    using scratch = scratchDir();
    const path = join(scratch.path, "ovs-vswitchd.1.ctl");
    await expect(openControl([{ t: "unix", path }], "ask")).rejects.toMatchObject({
      code: CniCode.tryAgainLater,
      message: `Cannot ask: nobody answers at "${path}": connecting fails with ENOENT, wanted a running ovs-vswitchd, or its socket by --control`,
    });
    await expect(openControl([], "ask")).rejects.toThrow("there is no socket of ovs-vswitchd");
  });
});
