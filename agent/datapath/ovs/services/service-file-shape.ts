import { formatIp, type Ip, parseIp } from "../../../../shared/net/ip.ts";
import type { ReadText } from "../../../config/followed-file.ts";
import { readDocument } from "../../../config/read-document.ts";
import type { Shape, Shaped, ShapeProblem } from "../../../config/yaml-shape.ts";
import { type Endpoint, maxEndpoints, protocols, type Service } from "./service.ts";

const address: Shape = {
  t: "string",
  wanted: 'an address such as "10.96.0.10" or "fd00:96::10", neither 0, loopback nor multicast',
  wrong: (text) => {
    const ip = parseIp(text);
    return ip === undefined || !isUnicast(ip) ? "another" : undefined;
  },
};

/** Of a single host: neither unspecified, loopback, link-local multicast nor broadcast. */
function isUnicast({ family, value }: Ip): boolean {
  if (family === 6) return value > 1n && value >> 120n !== 0xffn;
  const first = Number(value >> 24n);
  return first !== 0 && first !== 127 && first < 224;
}

const port: Shape = { t: "integer", least: 1, most: 65_535 };

const endpoint: Shape = {
  t: "map",
  required: ["ip", "port"],
  keys: { ip: address, port, weight: { t: "integer", least: 1, most: 65_535 } },
};

const service: Shape = {
  t: "map",
  required: ["name", "clusterIp", "protocol", "port", "endpoints"],
  keys: {
    name: {
      t: "string",
      wanted: '1 to 256 printable characters without blanks, such as "default/web:http"',
      wrong: (text) => (/^[\x21-\x7e]{1,256}$/.test(text) ? undefined : "another"),
    },
    clusterIp: address,
    protocol: {
      t: "string",
      wanted: `one of ${protocols.map((name) => `"${name}"`).join(", ")}`,
      wrong: (text) => (protocols.some((name) => name === text) ? undefined : "another"),
    },
    port,
    // The longest time of a learned flow, a field of 16 bits; Kubernetes' default is 10800.
    affinitySeconds: { t: "integer", least: 1, most: 65_535 },
    endpoints: { t: "list", of: endpoint, least: 0, most: maxEndpoints },
  },
};

/** Every key of a file of services. */
export const fileShape: Shape = {
  t: "map",
  required: ["services"],
  keys: { services: { t: "list", of: service, least: 0, most: 10_000 } },
};

/** What the shape guarantees. */
interface RawService {
  readonly name: string;
  readonly clusterIp: string;
  readonly protocol: Service["protocol"];
  readonly port: number;
  readonly affinitySeconds?: number;
  readonly endpoints: readonly { readonly ip: string; readonly port: number; readonly weight?: number }[];
}

const raw = (value: unknown): readonly RawService[] => (value as { services: readonly RawService[] }).services;

/** What an endpoint weighs that does not say; among such, all are alike. */
const ordinaryWeight = 100;

/** Reads the text of a file of services; `file` is for the messages only. */
export function readServices(text: string, file: string): ReadText<ReadonlyMap<string, Service>> {
  const read = readDocument(text, file, fileShape, contradictions);
  if (read.t === "wrong") return read;
  return { t: "ok", value: new Map(raw(read.value).map((given) => [given.name, toService(given)])) };
}

function toService({ name, clusterIp, protocol, port, affinitySeconds, endpoints }: RawService): Service {
  return {
    key: name,
    clusterIp: ipIn(clusterIp),
    protocol,
    port,
    endpoints: endpoints.map((given): Endpoint => {
      return { ip: ipIn(given.ip), port: given.port, weight: given.weight ?? ordinaryWeight };
    }),
    ...(affinitySeconds === undefined ? {} : { affinitySeconds }),
  };
}

function ipIn(text: string): Ip {
  const ip = parseIp(text);
  if (ip === undefined) throw new Error(`Broken invariant: "${text}" was taken for an address`);
  return ip;
}

/** Faults that no single value shows. */
function contradictions(shaped: Shaped): ShapeProblem[] {
  const problems: ShapeProblem[] = [];
  const say = (path: string, text: string): void => {
    problems.push({ offset: shaped.offsets.get(path) ?? 0, text: `"${path}" is ${text}` });
  };
  const names = new Set<string>();
  const places = new Map<string, string>();
  raw(shaped.value).forEach((given, i) => {
    const at = `services[${i}]`;
    const clusterIp = ipIn(given.clusterIp);
    if (names.has(given.name)) say(`${at}.name`, `"${given.name}" for the second time, wanted another name`);
    names.add(given.name);
    const place = `${given.protocol} ${formatIp(clusterIp)} ${given.port}`;
    const other = places.get(place);
    if (other !== undefined) say(`${at}.clusterIp`, `with protocol and port that of "${other}", wanted its own`);
    places.set(place, given.name);
    const seen = new Set<string>();
    given.endpoints.forEach(({ ip: text, port }, k) => {
      const ip = ipIn(text);
      const [path, here] = [`${at}.endpoints[${k}]`, `${formatIp(ip)} ${port}`];
      if (ip.family !== clusterIp.family) say(`${path}.ip`, `"${text}", wanted IPv${clusterIp.family} as "clusterIp"`);
      if (seen.has(here)) say(path, `"${text}" port ${port} for the second time, wanted each once`);
      seen.add(here);
    });
  });
  return problems;
}
