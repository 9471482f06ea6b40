import { flag, int32, int64, type MessageCodec, message, repeated, text, texts } from "./wire.ts";

/** The messages of `pipette.proto` around the service `Registry`, as in `pipette-messages.ts`. */

export interface ListNodesRequest {
  readonly rights: boolean;
}

export interface RegisteredNode {
  readonly name: string;
  readonly uid: string;
  readonly addresses: readonly string[];
  readonly mac: string;
  readonly subnets: readonly string[];
  readonly state: string;
  readonly problem: string;
}

export interface NodesPage {
  readonly registry: string;
  readonly revision: number;
  readonly nodes: readonly RegisteredNode[];
  readonly excessRights: readonly string[];
  readonly self: string;
}

export type ListTenantsRequest = Readonly<Record<never, never>>;

/** `Tenant` in the proto. */
export interface TenantMessage {
  readonly project: string;
  readonly vnid: number;
  readonly isConfirmed: boolean;
  readonly isShared: boolean;
}

export interface TenantsPage {
  readonly registry: string;
  readonly keepsNone: boolean;
  readonly tenants: readonly TenantMessage[];
}

export const ListNodesRequest: MessageCodec<ListNodesRequest> = message<ListNodesRequest>({ rights: flag(1) });

export const RegisteredNode: MessageCodec<RegisteredNode> = message<RegisteredNode>({
  name: text(1),
  uid: text(2),
  addresses: texts(3),
  mac: text(4),
  subnets: texts(5),
  state: text(6),
  problem: text(7),
});

export const NodesPage: MessageCodec<NodesPage> = message<NodesPage>({
  registry: text(1),
  revision: int64(2),
  nodes: repeated(3, RegisteredNode),
  excessRights: texts(4),
  self: text(5),
});

export const ListTenantsRequest: MessageCodec<ListTenantsRequest> = message<ListTenantsRequest>({});

export const TenantMessage: MessageCodec<TenantMessage> = message<TenantMessage>({
  project: text(1),
  vnid: int32(2),
  isConfirmed: flag(3),
  isShared: flag(4),
});

export const TenantsPage: MessageCodec<TenantsPage> = message<TenantsPage>({
  registry: text(1),
  keepsNone: flag(2),
  tenants: repeated(3, TenantMessage),
});
