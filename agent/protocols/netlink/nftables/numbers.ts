/** Numbers of linux/netfilter/nfnetlink.h and nf_tables.h, under the kernel's names. nftables has its numbers in network byte order. */

export const subsystem = 10 << 8;

/** NFT_MSG_*, with the subsystem that nfnetlink finds nftables by. */
export const NftMessage = {
  NEWTABLE: subsystem | 0,
  DELTABLE: subsystem | 2,
  NEWCHAIN: subsystem | 3,
  GETCHAIN: subsystem | 4,
  NEWRULE: subsystem | 6,
  DELRULE: subsystem | 8,
  NEWSET: subsystem | 9,
  NEWSETELEM: subsystem | 12,
  GETSETELEM: subsystem | 13,
  DELSETELEM: subsystem | 14,
} as const;

/** Of nfnetlink itself: what lies between them is done as a whole or not at all. */
export const BatchMessage = { BEGIN: 16, END: 17 } as const;
/** `res_id` of struct nfgenmsg: which subsystem a batch is for. */
export const batchSubsystem = 10;

/** NFPROTO_* */
export const TableFamily = { inet: 1, arp: 3, bridge: 7 } as const;

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
  SET_ID: 10,
  SET_USERDATA: 13,
  SET_ELEM_LIST_TABLE: 1,
  SET_ELEM_LIST_SET: 2,
  SET_ELEM_LIST_ELEMENTS: 3,
  SET_ELEM_KEY: 1,
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
  LOOKUP_FLAGS: 5,
  PAYLOAD_DREG: 1,
  PAYLOAD_BASE: 2,
  PAYLOAD_OFFSET: 3,
  PAYLOAD_LEN: 4,
  META_DREG: 1,
  META_KEY: 2,
  EXTHDR_DREG: 1,
  EXTHDR_TYPE: 2,
  EXTHDR_OFFSET: 3,
  EXTHDR_LEN: 4,
  EXTHDR_FLAGS: 5,
  FIB_DREG: 1,
  FIB_RESULT: 2,
  FIB_FLAGS: 3,
  REJECT_TYPE: 1,
  REJECT_ICMP_CODE: 2,
} as const;

/** NFT_META_* */
export const Meta = { IIF: 4, IIFNAME: 6, OIFNAME: 7, NFPROTO: 15, L4PROTO: 16, IIFGROUP: 21 } as const;

/** NFT_PAYLOAD_*: from where on an offset counts. */
export const PayloadBase = { link: 0, network: 1, transport: 2 } as const;

/** NFT_CMP_* */
export const Comparison = { eq: 0, neq: 1, lt: 2, lte: 3, gt: 4, gte: 5 } as const;

/** NF_DROP, NF_ACCEPT, NFT_GOTO */
export const Verdict = { drop: 0, accept: 1, goto: -4 } as const;

export const LOOKUP_INVERTED = 1;
/** NFT_EXTHDR_F_PRESENT: answers whether the header is there, instead of its bytes. */
export const EXTHDR_PRESENT = 1;
/** NFT_FIB_RESULT_ADDRTYPE, and NFTA_FIB_F_DADDR with NFTA_FIB_F_IIF: what the destination is to the interface that the packet came in by. */
export const Fib = { ADDRTYPE: 3, DESTINATION_AT_INPUT: 0x2 | 0x8 } as const;
/** NFT_REJECT_ICMPX_UNREACH, NFT_REJECT_ICMPX_HOST_UNREACH: by the ICMP of the packet's family. */
export const Reject = { ICMPX_UNREACH: 2, HOST_UNREACH: 2 } as const;

/** NFT_REG_VERDICT, and the first of sixteen registers of four bytes each. */
export const Register = { VERDICT: 0, FIRST: 8 } as const;
