/** Numbers of linux/netfilter/nfnetlink.h and nf_tables.h, under the kernel's names. nftables has its numbers in network byte order. */

export const subsystem = 10 << 8;

/** NFT_MSG_*, with the subsystem that nfnetlink finds nftables by. */
export const NftMessage = {
  NEWTABLE: subsystem | 0,
  DELTABLE: subsystem | 2,
  NEWCHAIN: subsystem | 3,
  GETCHAIN: subsystem | 4,
  DELCHAIN: subsystem | 5,
  NEWRULE: subsystem | 6,
  GETRULE: subsystem | 7,
  DELRULE: subsystem | 8,
  NEWSET: subsystem | 9,
  GETSET: subsystem | 10,
  DELSET: subsystem | 11,
  NEWSETELEM: subsystem | 12,
  GETSETELEM: subsystem | 13,
  DELSETELEM: subsystem | 14,
  NEWOBJ: subsystem | 18,
  GETOBJ: subsystem | 19,
  DELOBJ: subsystem | 20,
} as const;

/** Of nfnetlink itself: what lies between them is done as a whole or not at all. */
export const BatchMessage = { BEGIN: 16, END: 17 } as const;
/** `res_id` of struct nfgenmsg: which subsystem a batch is for. */
export const batchSubsystem = 10;

/** NFPROTO_* */
export const TableFamily = { inet: 1, ip: 2, arp: 3, bridge: 7, ip6: 10 } as const;

/** NLM_F_APPEND: behind the rules that stand. */
export const APPEND = 0x800;

export const Nfta = {
  LIST_ELEM: 1,
  TABLE_NAME: 1,
  CHAIN_TABLE: 1,
  CHAIN_NAME: 3,
  CHAIN_HOOK: 4,
  CHAIN_POLICY: 5,
  CHAIN_USE: 6,
  CHAIN_TYPE: 7,
  HOOK_HOOKNUM: 1,
  HOOK_PRIORITY: 2,
  RULE_TABLE: 1,
  RULE_CHAIN: 2,
  RULE_EXPRESSIONS: 4,
  RULE_USERDATA: 7,
  SET_TABLE: 1,
  SET_NAME: 2,
  SET_FLAGS: 3,
  SET_KEY_TYPE: 4,
  SET_KEY_LEN: 5,
  SET_DATA_TYPE: 6,
  SET_DATA_LEN: 7,
  SET_DESC: 9,
  SET_DESC_SIZE: 1,
  SET_DESC_CONCAT: 2,
  SET_FIELD_LEN: 1,
  SET_ID: 10,
  SET_USERDATA: 13,
  SET_ELEM_LIST_TABLE: 1,
  SET_ELEM_LIST_SET: 2,
  SET_ELEM_LIST_ELEMENTS: 3,
  SET_ELEM_KEY: 1,
  SET_ELEM_DATA: 2,
  SET_ELEM_FLAGS: 3,
  SET_ELEM_KEY_END: 10,
  OBJ_TABLE: 1,
  OBJ_NAME: 2,
  OBJ_TYPE: 3,
  OBJ_DATA: 4,
  COUNTER_BYTES: 1,
  COUNTER_PACKETS: 2,
  DATA_VALUE: 1,
  DATA_VERDICT: 2,
  VERDICT_CODE: 1,
  VERDICT_CHAIN: 2,
  EXPR_NAME: 1,
  EXPR_DATA: 2,
  IMMEDIATE_DREG: 1,
  IMMEDIATE_DATA: 2,
  BITWISE_SREG: 1,
  BITWISE_DREG: 2,
  BITWISE_LEN: 3,
  BITWISE_MASK: 4,
  BITWISE_XOR: 5,
  CMP_SREG: 1,
  CMP_OP: 2,
  CMP_DATA: 3,
  LOOKUP_SET: 1,
  LOOKUP_SREG: 2,
  LOOKUP_DREG: 3,
  LOOKUP_FLAGS: 5,
  PAYLOAD_DREG: 1,
  PAYLOAD_BASE: 2,
  PAYLOAD_OFFSET: 3,
  PAYLOAD_LEN: 4,
  PAYLOAD_SREG: 5,
  META_DREG: 1,
  META_KEY: 2,
  META_SREG: 3,
  CT_DREG: 1,
  CT_KEY: 2,
  CT_DIRECTION: 3,
  OBJREF_TYPE: 1,
  OBJREF_NAME: 2,
  EXTHDR_DREG: 1,
  EXTHDR_TYPE: 2,
  EXTHDR_OFFSET: 3,
  EXTHDR_LEN: 4,
  EXTHDR_FLAGS: 5,
  FIB_DREG: 1,
  FIB_RESULT: 2,
  FIB_FLAGS: 3,
  LIMIT_RATE: 1,
  LIMIT_UNIT: 2,
  LIMIT_BURST: 3,
  LOG_GROUP: 1,
  LOG_PREFIX: 2,
  LOG_SNAPLEN: 3,
  REJECT_TYPE: 1,
  REJECT_ICMP_CODE: 2,
  NG_DREG: 1,
  NG_MODULUS: 2,
  NG_TYPE: 3,
  NG_OFFSET: 4,
  NAT_TYPE: 1,
  NAT_FAMILY: 2,
  NAT_REG_ADDR_MIN: 3,
  NAT_REG_PROTO_MIN: 5,
  DYNSET_SET_NAME: 1,
  DYNSET_OP: 3,
  DYNSET_SREG_KEY: 4,
  DYNSET_SREG_DATA: 5,
  DYNSET_TIMEOUT: 6,
} as const;

/** NFT_META_* */
export const Meta = {
  PRIORITY: 2,
  MARK: 3,
  IIF: 4,
  OIF: 5,
  IIFNAME: 6,
  OIFNAME: 7,
  NFPROTO: 15,
  L4PROTO: 16,
  PKTTYPE: 19,
  IIFGROUP: 21,
} as const;

/** NFT_CT_*: what the kernel has noted of a packet's connection. */
export const Ct = { STATE: 0, STATUS: 2, PROTOCOL: 10, PROTO_SRC: 11, SRC_IP: 19, SRC_IP6: 21 } as const;
/** enum ip_conntrack_dir */
export const CtDirection = { original: 0, reply: 1 } as const;
/** NF_CT_STATE_INVALID_BIT, NF_CT_STATE_UNTRACKED_BIT */
export const CtState = { invalid: 1, untracked: 64 } as const;
/** IPS_CONFIRMED: the connection's first packet has passed all hooks. */
export const ctConfirmed = 8;
/** IPS_DST_NAT: its destination was translated. */
export const ctDestinationTranslated = 32;

/** NFT_SET_* */
export const SetFlag = { INTERVAL: 4, MAP: 8, TIMEOUT: 0x10, EVAL: 0x20, CONCAT: 0x80 } as const;
/** NFT_DATA_VERDICT */
export const VERDICT_DATA = 0xffffff00;
/** NFT_SET_ELEM_INTERVAL_END */
export const INTERVAL_END = 1;
/** NFT_OBJECT_COUNTER */
export const COUNTER_OBJECT = 1;
/** PACKET_HOST: the frame is for the node itself. */
export const PACKET_HOST = 0;

/** NFT_PAYLOAD_*: from where on an offset counts. */
export const PayloadBase = { link: 0, network: 1, transport: 2 } as const;

/** NFT_CMP_* */
export const Comparison = { eq: 0, neq: 1, lt: 2, lte: 3, gt: 4, gte: 5 } as const;

/** NF_DROP, NF_ACCEPT, NFT_JUMP, NFT_GOTO */
export const Verdict = { drop: 0, accept: 1, jump: -3, goto: -4 } as const;

export const LOOKUP_INVERTED = 1;
/** NFT_EXTHDR_F_PRESENT: answers whether the header is there, instead of its bytes. */
export const EXTHDR_PRESENT = 1;
/** NFT_FIB_RESULT_ADDRTYPE, and NFTA_FIB_F_SADDR, or NFTA_FIB_F_DADDR with NFTA_FIB_F_IIF: what the destination is to the interface that the packet came in by. */
export const Fib = { ADDRTYPE: 3, SOURCE: 0x1, DESTINATION: 0x2, DESTINATION_AT_INPUT: 0x2 | 0x8 } as const;
/** NFT_REJECT_TCP_RST and NFT_REJECT_ICMPX_UNREACH, by the ICMP of the packet's family; NFT_REJECT_ICMPX_*_UNREACH */
export const Reject = { TCP_RST: 1, ICMPX_UNREACH: 2, PORT_UNREACH: 1, HOST_UNREACH: 2 } as const;
/** NFT_NG_RANDOM */
export const RANDOM = 1;
/** NFT_NAT_DNAT */
export const DNAT = 1;
/** NFT_DYNSET_OP_* */
export const DynsetOp = { update: 1, delete: 2 } as const;

/** NFT_REG_VERDICT, and the first of sixteen registers of four bytes each. */
export const Register = { VERDICT: 0, FIRST: 8 } as const;
