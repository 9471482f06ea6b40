import { expect, test } from "vitest";
import { withAcls } from "../../agent/datapath/hns/policies/acl.ts";
import { EndpointAcls, standingAcls } from "../../agent/datapath/hns/policies/endpoint-acls.ts";
import { ownerKey } from "../../shared/cni/owner-key.ts";
import { formatIp, parseIp } from "../../shared/net/ip.ts";
import {
  type Endpoint,
  evaluate,
  isSubject,
  type NetworkPolicy,
  type Pod,
  type Rule,
  readPod,
  readPolicy,
} from "../../shared/policy/mod.ts";
import { checkAcls, PacketFilter } from "../fakes/hns/acls.ts";
import { HnsStore } from "../fakes/hns/store.ts";
import { drawCluster, drawQuestion } from "../fakes/random-cluster.ts";
import { random } from "../support/random.ts";
import { seed } from "../support/seed.ts";
import { clusterOf, nodePolicies, type World } from "./node-policies.ts";
import { ownerOf } from "./told-node.ts";

const worlds = 60;
const questionsPerWorld = 60;

/** Rules that HNS is not given. A name of a port with SCTP is nobody's here, so that it is no port at all. */
const namesSctp = ({ ports }: Rule): boolean =>
  ports?.some(({ protocol, port }) => protocol === "SCTP" && typeof port !== "string") === true;

const withoutSctp = ({ ingress, egress, ...policy }: NetworkPolicy): NetworkPolicy => ({
  ...policy,
  ...(ingress === undefined ? {} : { ingress: ingress.filter((rule) => !namesSctp(rule)) }),
  ...(egress === undefined ? {} : { egress: egress.filter((rule) => !namesSctp(rule)) }),
});

/** HNS with an endpoint for each pod, and the ACLs that follow. */
function storeOf(world: World): { readonly store: HnsStore; readonly refused: number } {
  const store = new HnsStore();
  const wanted = nodePolicies(world, ownerOf);
  const rules = new EndpointAcls().rulesOf(wanted);
  for (const pod of world.pods.filter(isSubject)) {
    const ips = pod.ips.filter(({ family }) => family === 4);
    const key = ownerKey(ownerOf(pod));
    const { parts = [] } = rules.get(key) ?? {};
    const standing = standingAcls(wanted.isolated.get(key), ips, [parseIp("192.168.1.5")!]);
    const document = { Policies: withAcls({}, [...standing, ...parts.flatMap(({ acls }) => acls)]) };
    checkAcls(document);
    store.endpoints.set(key, { ...document, IpConfigurations: ips.map((ip) => ({ IpAddress: formatIp(ip) })) });
  }
  return { store, refused: [...rules.values()].flatMap(({ refused }) => refused).length };
}

test("in random worlds HNS lets through what the evaluator says, but for rules with SCTP", () => {
  const tally = { passed: 0, stopped: 0, refused: 0 };
  for (let drawn = 0; drawn < worlds; drawn++) {
    const next = random(seed * 1_000_033 + drawn);
    const cluster = drawCluster(next);
    const pods = new Map(cluster.pods.map((plain) => [plain, readPod({ ...plain })!]));
    const policies = cluster.policies.flatMap((plain) => readPolicy({ ...plain }) ?? []);
    const world: World = { pods: [...pods.values()], policies, namespaces: cluster.namespaces };
    const { store, refused } = storeOf(world);
    const known = clusterOf({ ...world, policies: policies.map(withoutSctp) });
    tally.refused += refused;
    for (let asked = 0; asked < questionsPerWorld; asked++) {
      const { source, destination, traffic } = drawQuestion(cluster, next);
      const endOf = ({ pod, ip }: typeof source): Endpoint | undefined => {
        const [own, of]: [ReturnType<typeof parseIp>, Pod | undefined] = [parseIp(ip), pod && pods.get(pod)];
        if (own?.family !== 4) return undefined;
        if (of === undefined) return { t: "outside", ip: own };
        return isSubject(of) ? { t: "pod", pod: of, ip: own } : undefined;
      };
      const [from, to] = [endOf(source), endOf(destination)];
      if (from === undefined || to === undefined || source.ip === destination.ip) continue;
      const { allowed } = evaluate(known, { source: from, destination: to, traffic });
      const protocol = traffic.protocol as Parameters<PacketFilter["opens"]>[2];
      const arrives = new PacketFilter(store).opens(source.ip, destination.ip, protocol, traffic.port ?? 0);
      expect([`world ${drawn} of seed ${seed}`, source.ip, destination.ip, traffic, arrives]).toEqual([
        `world ${drawn} of seed ${seed}`,
        source.ip,
        destination.ip,
        traffic,
        allowed,
      ]);
      tally[allowed ? "passed" : "stopped"]++;
    }
  }
  for (const count of Object.values(tally)) expect(count).toBeGreaterThan(worlds);
});
