import { Refusal } from "../../shared/access/mod.ts";
import { type ApiObject, mapIn, mapsIn, textIn } from "../../shared/kubernetes/mod.ts";
import { decodeObject, NetworkPolicyStatus, ObjectMeta } from "../../shared/proto/control-plane-messages.ts";
import { NetworkPolicyEvaluation, NodeStatsSummary } from "../../shared/proto/control-plane-reports.ts";
import { type Codec, type MessageOf, WireError } from "../../shared/proto/wire.ts";
import { parseJson } from "../../shared/schema/json.ts";
import { isObject } from "../../shared/schema/json-fields.ts";
import { type HandedReports, readHanded } from "../reports/mod.ts";
import { jsonType, protobufType } from "./encoding.ts";

/** What agents and operators send, in either encoding. Fields that nobody knows are skipped, as the API server does it. */

/** A request, as far as its body goes. */
export interface Body {
  header(name: string): string | undefined;
  body(maxBytes: number): Promise<Uint8Array>;
}

/** Counters of ten thousand policies, which is far more than one node has. */
const maxBodyBytes = 2 * 1024 * 1024;

/** @param codec absent: it comes in JSON alone @throws {Refusal} for what is no such object */
async function readBody<M>(
  exchange: Body,
  kind: string,
  codec: Codec<M> | undefined,
  fromJson: (object: ApiObject) => M,
): Promise<M> {
  const type = (exchange.header("content-type") ?? jsonType).split(";")[0]?.trim();
  const types = [jsonType, ...(codec === undefined ? [] : [protobufType])];
  if (type === undefined || !types.includes(type)) throw new Refusal(415, `wanted ${types.join(" or ")}`);
  const bytes = await exchange.body(maxBodyBytes);
  if (codec !== undefined && type === protobufType) return decoded(bytes, kind, codec);
  const object = parsed(bytes);
  if (!isObject(object) || (object["kind"] ?? kind) !== kind) throw new Refusal(400, `the body is no ${kind}`);
  return fromJson(object);
}

function decoded<M>(bytes: Uint8Array, kind: string, codec: Codec<M>): M {
  try {
    const { kind: is, raw } = decodeObject(bytes);
    if (is === kind) return codec.decode(raw);
  } catch (caught) {
    if (!(caught instanceof WireError)) throw caught;
  }
  throw new Refusal(400, `the body is no ${kind}`);
}

function parsed(bytes: Uint8Array): unknown {
  try {
    return parseJson(new TextDecoder().decode(bytes));
  } catch {
    return undefined;
  }
}

const countIn = (object: ApiObject, key: string): number => {
  const value = object[key];
  return typeof value === "number" && Number.isSafeInteger(value) ? value : 0;
};

const metadataIn = (object: ApiObject): ObjectMeta => ({
  ...ObjectMeta.absent(),
  name: textIn(mapIn(object, "metadata"), "name") ?? "",
});

export const readStatus = (exchange: Body): Promise<MessageOf<typeof NetworkPolicyStatus>> =>
  readBody(exchange, "NetworkPolicyStatus", NetworkPolicyStatus, (object) => ({
    metadata: metadataIn(object),
    nodes: mapsIn(object, "nodes").map((node) => ({
      nodeName: textIn(node, "nodeName") ?? "",
      generation: countIn(node, "generation"),
      realizationFailure: node["realizationFailure"] === true,
      message: textIn(node, "message") ?? "",
    })),
  }));

export const readStats = (exchange: Body): Promise<MessageOf<typeof NodeStatsSummary>> =>
  readBody(exchange, "NodeStatsSummary", NodeStatsSummary, (object) => ({
    metadata: metadataIn(object),
    networkPolicies: mapsIn(object, "networkPolicies").map((each) => {
      const [policy, traffic] = [mapIn(each, "networkPolicy"), mapIn(each, "trafficStats")];
      return {
        networkPolicy: { type: "", namespace: "", name: "", uid: textIn(policy, "uid") ?? "" },
        trafficStats: {
          packets: countIn(traffic, "packets"),
          bytes: countIn(traffic, "bytes"),
          sessions: countIn(traffic, "sessions"),
        },
      };
    }),
  }));

/** Of another controller. */
export const readReports = (exchange: Body): Promise<HandedReports[]> =>
  readBody(exchange, "PolicyReports", undefined, readHanded);

export type Evaluation = MessageOf<typeof NetworkPolicyEvaluation>;

export const readEvaluation = (exchange: Body): Promise<Evaluation> =>
  readBody(exchange, "NetworkPolicyEvaluation", NetworkPolicyEvaluation, (object) => {
    const entity = (key: string): { pod: { name: string; namespace: string } } => {
      const pod = mapIn(mapIn(mapIn(object, "request"), key), "pod");
      return { pod: { name: textIn(pod, "name") ?? "", namespace: textIn(pod, "namespace") ?? "" } };
    };
    return { request: { source: entity("source"), destination: entity("destination") } };
  });
