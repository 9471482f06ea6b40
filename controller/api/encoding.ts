import { Refusal } from "../../shared/access/mod.ts";
import type { Exchange } from "../../shared/https/mod.ts";
import type { Encoding } from "../watches/mod.ts";

export const protobufType = "application/vnd.kubernetes.protobuf";
export const jsonType = "application/json";

export const contentTypes: Readonly<Record<Encoding, string>> = { json: jsonType, protobuf: protobufType };

/** The first of what a client takes that there is. */
export function acceptedEncoding(exchange: Exchange): Encoding {
  const accept = exchange.header("accept") ?? "*/*";
  for (const each of accept.split(",")) {
    const [type = "", ...parameters] = each.split(";").map((part) => part.trim());
    // Tables and lists of metadata alone are not made here; those who ask for them take plain objects too.
    if (parameters.some((parameter) => parameter.startsWith("as="))) continue;
    if (type === protobufType) return "protobuf";
    if ([jsonType, "application/*", "*/*"].includes(type)) return "json";
  }
  throw new Refusal(406, `wanted ${jsonType} or ${protobufType}`);
}
