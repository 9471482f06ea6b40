import { readAnswer } from "../../../agent/datapath/hns/windows-host/powershell.ts";
import { readEndpoint, readLoadBalancer, readNamespace, readNetwork } from "../../../agent/protocols/hcn/documents.ts";
import { HcnError } from "../../../agent/protocols/hcn/hcn-error.ts";
import { functionName, hcnKinds, NativeError } from "../../../agent/protocols/hcn/native.ts";
import { HcnOperations } from "../../../agent/protocols/hcn/operations.ts";
import { CniError } from "../../../shared/errors.ts";
import { HnsService } from "../../fakes/hns/hns-service.ts";
import { NativeHns } from "../../fakes/hns/native-hns.ts";
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
class Answering extends NativeHns {
  readonly #text: string;
  constructor(service: HnsService, text: string) {
    super(service);
    this.#text = text;
    for (const kind of hcnKinds) service.store.of(kind).set(guid.toUpperCase(), { ID: guid.toUpperCase() });
  }
  override enumerate(): string {
    return this.#text;
  }
  override query(): string {
    return this.#text;
  }
  override hnsCall(): string {
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
  maxBytes: 16 * 1024,
  open: () => ({
    run: (input) => {
      const text = textOf(input);
      const service = new HnsService();
      const operations = new HcnOperations(new Answering(service, text));
      for (const kind of hcnKinds) {
        attempt(() => void operations.findAll(kind, operations.ids(kind)).map((document) => readers[kind](document)));
        attempt(() => {
          const document = operations.find(kind, guid);
          if (document !== undefined) readers[kind](document);
        });
        for (const hresult of [0x803b0002, 0x80004005]) {
          using _fault = service.fault({ call: functionName("open", kind), hresult, says: text });
          attempt(() => void operations.find(kind, guid));
        }
      }
      const open = service.handles.list();
      if (open.length !== 0) throw new Error(`${open.length} handles are open when all is over, wanted none`);
      const answer = readAnswer(`before ~~m~~${text}~~m~~ after`, "~~m~~");
      if (answer.t === "none" && answer.is.length > 1400) throw new Error("An answer is quoted at length");
    },
  }),
};
