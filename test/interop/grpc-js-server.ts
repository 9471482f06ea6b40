import { setTimeout as sleep } from "node:timers/promises";
import {
  Server,
  ServerCredentials,
  type ServerUnaryCall,
  type sendUnaryData,
  type UntypedServiceImplementation,
} from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";

/**
 * Serves `Cni` by @grpc/grpc-js and the text of the proto file. What CmdAdd answers is chosen by the container id,
 * as in go/server/main.go.
 *
 * usage: bun grpc-js-server.ts SOCKET
 */

interface Request {
  readonly cniArgs: {
    readonly containerId: string;
    readonly netns: string;
    readonly ifname: string;
    readonly args: string;
    readonly path: string;
    readonly networkConfiguration: Buffer;
  };
}

type Call = ServerUnaryCall<Request, object>;

const utf8 = (text: string): object => ({ cniResult: Buffer.from(text) });

async function answer(call: Call): Promise<object> {
  const { containerId, netns, ifname, args, path, networkConfiguration } = call.request.cniArgs;
  const [what = "", number = ""] = containerId.split("-");
  switch (what) {
    case "echo":
      return { cniResult: networkConfiguration };
    case "arguments":
      return utf8([containerId, netns, ifname, args, path].join("|"));
    case "error": {
      const details = [
        { type_url: "type.example/a", value: Buffer.from([1, 2, 3]) },
        { type_url: "type.example/b", value: Buffer.alloc(0) },
      ];
      return { error: { code: 102, message: "no bridge", details } };
    }
    case "traceparent":
      return utf8(call.metadata.get("traceparent").join(","));
    case "remaining":
      return utf8(String(Number(call.getDeadline()) - Date.now()));
    case "bytes":
      return utf8("x".repeat(Number(number)));
    case "silence":
      await sleep(60_000);
      return {};
    case "status":
      throw { code: Number(number), details: networkConfiguration.toString() };
    default:
      throw { code: 3, details: containerId };
  }
}

const proto = new URL("../../shared/proto/cni.proto", import.meta.url).pathname;
const { "antrea_io.antrea.pkg.apis.cni.v1beta1.Cni": service } = loadSync(proto, { defaults: true });
const implementation: UntypedServiceImplementation = {
  CmdAdd: (call: Call, respond: sendUnaryData<object>) => {
    answer(call).then(
      (response) => respond(null, response),
      (error) => respond(error, null),
    );
  },
};

const [path = ""] = process.argv.slice(2);
const server = new Server();
server.addService(service as Parameters<Server["addService"]>[0], implementation);
await new Promise<void>((resolve, reject) =>
  server.bindAsync(`unix:${path}`, ServerCredentials.createInsecure(), (error) => (error ? reject(error) : resolve())),
);
console.log("ready");
