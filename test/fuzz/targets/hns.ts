import { readAnswer } from "../../../agent/datapath/hns/windows-host/powershell.ts";
import { readEndpoint, readLoadBalancer, readNamespace, readNetwork } from "../../../agent/protocols/hcn/documents.ts";
import { HcnError } from "../../../agent/protocols/hcn/hcn-error.ts";
import { functionName, hcnKinds, NativeError } from "../../../agent/protocols/hcn/native.ts";
import { NativeInMemory } from "../../../agent/protocols/hcn/native-in-memory.ts";
import { HcnOperations } from "../../../agent/protocols/hcn/operations.ts";
import { CniError } from "../../../shared/errors.ts";
import type { Target } from "../engine/target.ts";
import { jsonMutator } from "../mutate/json.ts";
import { requireSentence, textOf } from "./words.ts";

const words = [
  ...["ID", "Id", "Name", "Type", "Ipams", "Subnets", "IpAddressPrefix", "Routes", "DestinationPrefix", "NextHop"],
  ...["HostComputeNetwork", "VirtualNetwork", "HostComputeNamespace", "IpConfigurations", "IpAddress", "PrefixLength"],
  ...["MacAddress", "Flags", "IsRemoteEndpoint", "Resources", "Data", "Endpoint", "Container", "HostComputeEndpoints"],
  ...[
    "Success",
    "Error",
    "ErrorCode",
    "Output",
    "tables",
    "value",
    "Count",
    "__proto__",
    "3f2504e0-4f89-11d3-9a0c-0305e82c3301",
  ],
];
const readers = {
  network: readNetwork,
  endpoint: readEndpoint,
  namespace: readNamespace,
  loadBalancer: readLoadBalancer,
};
const guid = "3f2504e0-4f89-11d3-9a0c-0305e82c3301";

/** HNS as a library that answers this text, whatever it is asked; it counts its handles. */
class Answering extends NativeInMemory {
  readonly #text: string;
  constructor(text: string) {
    super();
    this.#text = text;
    for (const kind of hcnKinds) this.put(kind, guid);
    this.onHnsCall = () => text;
  }
  override enumerate(): string {
    return this.#text;
  }
  override query(): string {
    return this.#text;
  }
}

function attempt(run: () => void): void {
  try {
    run();
  } catch (caught) {
    if (!(caught instanceof NativeError)) throw caught;
    // So it reaches the agent: from the thread as an `HcnError`, from there to the runtime.
    const error = new HcnError({ action: "ask HNS", ...caught.failure });
    requireSentence(CniError.from(error).message.replace("Cannot finish the call: ", ""), "an error of HNS");
  }
}

export const hns: Target = {
  name: "hns",
  what: "documents and errors of HNS, answers of PowerShell",
  mutators: [jsonMutator(words)],
  dictionary: words,
  mostBytes: 16 * 1024,
  open: () => ({
    run: (input) => {
      const text = textOf(input);
      const native = new Answering(text);
      const operations = new HcnOperations(native);
      for (const kind of hcnKinds) {
        attempt(() => void operations.list(kind).map((document) => readers[kind](document)));
        attempt(() => {
          const document = operations.find(kind, guid);
          if (document !== undefined) readers[kind](document);
        });
        native.fail(functionName("open", kind), { hresult: 0x803b0002, serviceText: text });
        attempt(() => void operations.find(kind, guid));
        native.fail(functionName("open", kind), { hresult: 0x80004005, serviceText: text });
        attempt(() => void operations.find(kind, guid));
        native.before = () => undefined;
      }
      if (native.handles.size !== 0)
        throw new Error(`${native.handles.size} handles are open when all is over, wanted none`);
      const answer = readAnswer(`before ~~m~~${text}~~m~~ after`, "~~m~~");
      if (answer.t === "none" && answer.is.length > 1400) throw new Error("An answer is quoted at length");
    },
  }),
};
