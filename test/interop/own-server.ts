import { createLogger } from "../../shared/log.ts";
import type { CniCmdResponse } from "../../shared/proto/cni-messages.ts";
import { cniService } from "../../shared/proto/services.ts";
import { type GrpcCode, RpcError } from "../../shared/rpc/rpc-error.ts";
import { CallTracker } from "../../shared/server/call-tracker.ts";
import { rpc } from "../../shared/server/handlers.ts";
import { RpcServer } from "../../shared/server/rpc-server.ts";

/**
 * Serves `Cni` as the agent does. What CmdAdd answers is chosen by the container id, as in grpc-js-server.ts.
 *
 * usage: bun own-server.ts SOCKET [BACKLOG]
 */

const answer = (cniResult: Uint8Array): CniCmdResponse => ({ cniResult });
const utf8 = (text: string): CniCmdResponse => answer(new TextEncoder().encode(text));

const cmdAdd = rpc(cniService.cmdAdd, async ({ cniArgs }): Promise<CniCmdResponse> => {
  if (cniArgs === undefined) throw new RpcError(3, "no arguments");
  const { containerId, netns, ifname, args, path, networkConfiguration } = cniArgs;
  const [what = "", number = ""] = containerId.split("-");
  switch (what) {
    case "echo":
      return answer(networkConfiguration);
    case "arguments":
      return utf8([containerId, netns, ifname, args, path].join("|"));
    case "error": {
      const details = [
        { typeUrl: "type.example/a", value: new Uint8Array([1, 2, 3]) },
        { typeUrl: "type.example/b", value: new Uint8Array(0) },
      ];
      return { cniResult: new Uint8Array(0), error: { code: 102, message: "no bridge", details } };
    }
    case "bytes":
      return utf8("x".repeat(Number(number)));
    case "silence":
      await Bun.sleep(60_000);
      return utf8("");
    case "status":
      throw new RpcError(Number(number) as GrpcCode, new TextDecoder().decode(networkConfiguration));
    default:
      throw new RpcError(3, containerId);
  }
});

const [path = "", backlog] = process.argv.slice(2);
const logger = createLogger("debug", (line) => console.error(line));
await RpcServer.listen(
  path,
  [[cmdAdd]],
  new CallTracker(),
  logger,
  backlog === undefined ? {} : { backlog: Number(backlog) },
);
console.log("ready");
