import { Refusal, type Wish } from "../../../shared/access/mod.ts";
import type { ClusterAccess } from "../../../shared/kubernetes/mod.ts";
import { type OwnProgram, PageCommands } from "../page-commands.ts";
import type { Person } from "./person.ts";

/** Runs a command of `pipette` for whoever the access is of. */
export type ProgramFor = (access: ClusterAccess) => OwnProgram;

const list = (resource: string, group = ""): Wish => ({ t: "resource", verb: "list", group, version: "v1", resource });

const everyNamespace = list("namespaces");
/** What is compared pod by pod is of the whole cluster. */
const wholeCluster = [list("pods"), list("networkpolicies", "networking.k8s.io")];

/**
 * What a person may have done: questions about policies, which the API server answers to them as it would to their tool.
 * Nothing of it changes anything.
 * @throws {Refusal} 503 where nobody can be asked what they may
 */
export async function commandsFor(
  person: Person,
  access: ClusterAccess,
  programFor: ProgramFor,
): Promise<PageCommands> {
  const only = [];
  // Of which namespaces they may list pods and policies, each question shows.
  if (await person.may(everyNamespace)) {
    only.push("why");
    if ((await person.lacks(wholeCluster)) === undefined) only.push("matrix", "what-if");
  }
  return new PageCommands(programFor(access), { cluster: [] }, only);
}

/** Questions at a time of all people: each may keep the server from its other work for a moment. */
const maxAtOnce = 2;

/** @throws {Refusal} 429, instead of answering, where others are being answered */
export function oneAfterTheOther(programFor: ProgramFor): ProgramFor {
  let running = 0;
  return (access) => ({
    run: async (args, options) => {
      if (running >= maxAtOnce) throw new Refusal(429, "questions of others are being answered", 1);
      running++;
      try {
        return await programFor(access).run(args, options);
      } finally {
        running--;
      }
    },
  });
}

/** The same API server, asked by somebody else: nothing of the server's own goes with it. */
export function accessAs(token: string, { server, tls, proxy }: ClusterAccess): ClusterAccess {
  return {
    server,
    tls: async () => {
      const { cert: _, key: __, ...trust } = await tls();
      return trust;
    },
    credentials: { authorization: async () => `Bearer ${token}`, renew: async () => false },
    ...(proxy === undefined ? {} : { proxy }),
  };
}
