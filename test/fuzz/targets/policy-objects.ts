import { PolicySet } from "../../../agent/policies/policy-set.ts";
import { RuleStore } from "../../../agent/policies/rule-store.ts";
import { WatchReader } from "../../../agent/policies/watch-reader.ts";
import { PolicyComputation } from "../../../controller/policy/mod.ts";
import { Watches } from "../../../controller/watches/mod.ts";
import { type ApiObject, mapIn, textIn } from "../../../shared/kubernetes/mod.ts";
import { namespaces, networkPolicies, pods } from "../../../shared/policy/mod.ts";
import { parseJson } from "../../../shared/schema/json.ts";
import { isObject } from "../../../shared/schema/json-fields.ts";
import type { Target } from "../engine/target.ts";
import { jsonLinesMutator } from "../mutate/json.ts";

const node = "n1";
const pod = { namespace: "x", name: "a", uid: "Pod x/a" };
/** Names as the API server takes them. */
const nameRule = /^[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?$/;
const owner = { network: "pods", sandboxId: "a", ifname: "eth0" };

/** An agent that follows a controller over the wire. */
class Follower {
  readonly store = new RuleStore();

  constructor(watches: Watches) {
    this.store.attach(owner, pod);
    const set = new PolicySet();
    let isComplete = false;
    const reader = new WatchReader("follow the policies", {
      event: (event) => (isComplete ? this.store.apply(event) : set.apply(event)),
      complete: () => {
        this.store.replace(set, true);
        isComplete = true;
      },
    });
    const write = (bytes: Uint8Array): boolean => {
      reader.push(bytes);
      return true;
    };
    watches.open({ node, resource: undefined, encoding: "protobuf" }, { write, end() {}, destroy() {} });
  }

  /** Whose rules are in force, and who is isolated. */
  get state(): unknown {
    const { rules, isolated } = this.store.take();
    return [[...rules.keys()].sort(), [...isolated.keys()]];
  }
}

function put(computation: PolicyComputation, object: ApiObject): void {
  const kind = textIn(object, "kind");
  const namespace = kind === "Namespace" ? namespaces.project(object) : undefined;
  const known = kind === "Pod" ? pods.project(object) : undefined;
  const policy = kind === "NetworkPolicy" ? networkPolicies.project(object) : undefined;
  if (namespace !== undefined) computation.putNamespace(namespace);
  if (known !== undefined) computation.putPod(known);
  if (policy !== undefined) computation.putPolicy(policy);
}

/** One object a line. What the API server itself sees to is given: names, uid and generation. */
const objectsIn = (input: Uint8Array): ApiObject[] =>
  new TextDecoder()
    .decode(input)
    .split("\n")
    .flatMap((line) => {
      const object = parsed(line);
      const metadata = mapIn(object, "metadata");
      const [kind, namespace = "", name = ""] = [
        textIn(object, "kind"),
        textIn(metadata, "namespace"),
        textIn(metadata, "name"),
      ];
      if (!nameRule.test(name) || (kind !== "Namespace" && !nameRule.test(namespace))) return [];
      return [{ ...object, metadata: { ...metadata, uid: `${kind} ${namespace}/${name}`, generation: 1 } }];
    });

function parsed(line: string): ApiObject {
  try {
    const value = parseJson(line);
    return isObject(value) ? value : {};
  } catch {
    return {};
  }
}

/** Objects as tenants write them: an agent understands all that comes of them, and by changes comes to the same as at once. */
export const policyObjects: Target = {
  name: "policy-objects",
  what: "Pods, Namespaces and NetworkPolicies, from the API server to the rules of an agent",
  mutators: [
    jsonLinesMutator(["podSelector", "matchLabels", "matchExpressions", "ipBlock", "except", "endPort", "app"]),
  ],
  dictionary: ["NetworkPolicy", "namespaceSelector", "Ingress", "Egress", "SCTP", "NotIn", "DoesNotExist", "0.0.0.0/0"],
  maxBytes: 8 * 1024,
  open: () => ({
    run: (input) => {
      const objects = objectsIn(input);
      const computation = new PolicyComputation();
      const watches = new Watches(computation);
      const half = Math.ceil(objects.length / 2);
      for (const object of objects.slice(0, half)) put(computation, object);
      const first = new Follower(watches);
      for (const object of objects.slice(half)) put(computation, object);
      watches.publish();
      const second = new Follower(watches);
      const [changed, whole] = [first.state, second.state];
      watches.end();
      if (!Bun.deepEquals(changed, whole))
        throw new Error(`By changes it is ${JSON.stringify(changed)}, and at once ${JSON.stringify(whole)}`);
    },
  }),
};
