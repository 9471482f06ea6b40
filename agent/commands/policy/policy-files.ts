import { parseAllDocuments } from "yaml";
import { CniCode, CniError } from "../../../shared/errors.ts";
import { type ApiObject, mapIn, mapsIn, textIn } from "../../../shared/kubernetes/mod.ts";
import { type NetworkPolicy, readPolicy } from "../../../shared/policy/mod.ts";
import { reasonOf } from "../../../shared/reason.ts";

/** What a file has of network policies. */
export interface PolicyFile {
  readonly policies: readonly NetworkPolicy[];
  /** Objects of other kinds, which are left aside: `Deployment "web"`. */
  readonly others: readonly string[];
}

/** A file of a cluster's whole configuration is shorter. */
export const maxFileBytes = 16 * 1024 * 1024;
const maxAliases = 100;

/**
 * Reads documents of YAML or JSON, as kubectl does it.
 * @param namespace of policies that name none
 * @throws {CniError} code 7 for what the API server would not take
 */
export function readPolicyFile(text: string, file: string, namespace: string): PolicyFile {
  const found = documentsOf(text, file).flatMap(itemsOf);
  const policies: NetworkPolicy[] = [];
  const others: string[] = [];
  for (const object of found) {
    const name = textIn(mapIn(object, "metadata"), "name") ?? "";
    if (object["kind"] !== "NetworkPolicy" || object["apiVersion"] !== "networking.k8s.io/v1") {
      others.push(`${textIn(object, "kind") ?? "object"} "${name}"`);
      continue;
    }
    const metadata = { ...mapIn(object, "metadata") };
    const policy = readPolicy({ ...object, metadata: { namespace, ...metadata } });
    if (policy === undefined) throw wrong(`"${file}" has a NetworkPolicy without a name`);
    if (policy.problems.length > 0)
      throw wrong(
        `NetworkPolicy "${policy.namespace}/${policy.name}" in "${file}" is not valid: ${policy.problems.join(", ")}`,
      );
    policies.push(policy);
  }
  return { policies, others };
}

const wrong = (is: string): CniError => new CniError(CniCode.invalidConfig, `Cannot read the policies: ${is}`);

function documentsOf(text: string, file: string): ApiObject[] {
  const documents = parseAllDocuments(text, { logLevel: "silent", prettyErrors: true });
  if (!Array.isArray(documents)) return [];
  return documents.flatMap((document) => {
    const [fault] = document.errors;
    if (fault !== undefined) throw wrong(`"${file}" is no YAML: ${fault.message.split("\n")[0]}`);
    let value: unknown;
    try {
      value = document.toJS({ maxAliasCount: maxAliases });
    } catch (caught) {
      throw wrong(`"${file}" is no YAML: ${reasonOf(caught)}`);
    }
    // Nothing but comments.
    if (value === null || value === undefined) return [];
    if (typeof value === "object" && !Array.isArray(value)) return [value as ApiObject];
    throw wrong(`"${file}" has a document that is no object of the API`);
  });
}

const itemsOf = (object: ApiObject): readonly ApiObject[] => {
  const kind = textIn(object, "kind") ?? "";
  if (!kind.endsWith("List")) return [object];
  // Items of a list of one kind need not say of which kind they are.
  const each = kind === "List" ? {} : { kind: kind.slice(0, -"List".length), apiVersion: object["apiVersion"] };
  return mapsIn(object, "items").map((item) => ({ ...each, ...item }));
};
