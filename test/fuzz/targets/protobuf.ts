import { CniCmdRequest, CniCmdResponse } from "../../../shared/proto/cni-messages.ts";
import { runtimeService } from "../../../shared/proto/cri-messages.ts";
import { HealthCheckRequest, ListPoliciesResponse } from "../../../shared/proto/daemon-services.ts";
import {
  AllocateRequest,
  CheckResponse,
  CollectRequest,
  ListRequest,
  OwnerRequest,
  StatsResponse,
} from "../../../shared/proto/ipam-messages.ts";
import {
  GcRequest,
  ListInterfacesResponse,
  MendRequest,
  StatusResponse,
} from "../../../shared/proto/pipette-messages.ts";
import { type Codec, WireError } from "../../../shared/proto/wire.ts";
import type { Target } from "../engine/target.ts";
import { nestedMutator, protobufFields } from "../mutate/frames.ts";
import { requireSentence } from "./words.ts";

const codecs: Readonly<Record<string, Codec<object>>> = {
  ...{ CniCmdRequest, CniCmdResponse, HealthCheckRequest, AllocateRequest, CollectRequest, ListRequest, OwnerRequest },
  ...{
    StatsResponse,
    CheckResponse,
    GcRequest,
    ListInterfacesResponse,
    ListPoliciesResponse,
    MendRequest,
    StatusResponse,
  },
};

/** What a container runtime answers; it is only read. */
const answers = Object.values(runtimeService).map(({ response }) => response as Codec<object>);

function readAnswers(bytes: Uint8Array): void {
  for (const codec of answers) {
    try {
      codec.decode(bytes);
    } catch (caught) {
      if (!(caught instanceof WireError)) throw caught;
    }
  }
}

function decode(name: string, bytes: Uint8Array): object | undefined {
  try {
    return codecs[name]?.decode(bytes);
  } catch (caught) {
    if (!(caught instanceof WireError)) throw caught;
    requireSentence(caught.message, "a wire error");
    return undefined;
  }
}

/** What was read is written, and read again, as the same. */
function readAs(name: string, bytes: Uint8Array): void {
  const value = decode(name, bytes);
  if (value === undefined) return;
  const written = codecs[name]?.encode(value) ?? bytes;
  const again = decode(name, written);
  if (!Bun.deepEquals(value, again, true)) throw new Error(`A ${name} is read as another after it was written`);
}

export const protobuf: Target = {
  name: "protobuf",
  what: "messages of every service",
  mutators: [nestedMutator(protobufFields)],
  dictionary: ["\x0a\x00", "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", "\x1b", "\x0b\x0c", "\xff\xff\xff\xff\x0f"],
  maxBytes: 16 * 1024,
  open: () => ({
    run: (input) => {
      for (const name in codecs) readAs(name, input);
      readAnswers(input);
    },
  }),
};
