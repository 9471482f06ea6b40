/** Numbers of the kernel's headers, under the kernel's names: linux/netlink.h, rtnetlink.h, if_link.h, if_addr.h, if_bridge.h, neighbour.h, net_namespace.h. */

export const Family = { UNSPEC: 0, INET: 2, BRIDGE: 7, INET6: 10 } as const;

export const Flag = {
  REQUEST: 0x1,
  ACK: 0x4,
  DUMP: 0x300,
  REPLACE: 0x100,
  EXCL: 0x200,
  CREATE: 0x400,
  /** On an answer: the dump was disturbed, ask again. */
  DUMP_INTR: 0x10,
  /** On NLMSG_ERROR: the inner message was cut to its header. */
  CAPPED: 0x100,
  /** On NLMSG_ERROR: attributes follow. */
  ACK_TLVS: 0x200,
} as const;

export const MessageType = {
  ERROR: 2,
  DONE: 3,
  NEWLINK: 16,
  DELLINK: 17,
  GETLINK: 18,
  SETLINK: 19,
  NEWADDR: 20,
  DELADDR: 21,
  GETADDR: 22,
  NEWROUTE: 24,
  DELROUTE: 25,
  GETROUTE: 26,
  NEWNEIGH: 28,
  DELNEIGH: 29,
  GETNEIGH: 30,
  NEWNETCONF: 80,
  GETNSID: 90,
  NEWLINKPROP: 108,
} as const;

export const Ifla = {
  ADDRESS: 1,
  IFNAME: 3,
  MTU: 4,
  LINK: 5,
  MASTER: 10,
  LINKINFO: 18,
  IFALIAS: 20,
  AF_SPEC: 26,
  GROUP: 27,
  NET_NS_FD: 28,
  EXT_MASK: 29,
  NUM_TX_QUEUES: 31,
  NUM_RX_QUEUES: 32,
  LINK_NETNSID: 37,
  TARGET_NETNSID: 46,
  PROP_LIST: 52,
  ALT_IFNAME: 53,
  INFO_KIND: 1,
  INFO_DATA: 2,
  INFO_SLAVE_KIND: 4,
  INFO_SLAVE_DATA: 5,
  VETH_INFO_PEER: 1,
  BRPORT_MODE: 4,
  BRPORT_GUARD: 5,
  BRPORT_LEARNING: 8,
  BRPORT_UNICAST_FLOOD: 9,
  BRPORT_MULTICAST_ROUTER: 25,
  BRPORT_GROUP_FWD_MASK: 31,
  BRPORT_LOCKED: 39,
  INET_CONF: 1,
} as const;

/** Indexes of IFLA_INET_CONF (linux/ip.h, IPV4_DEVCONF_*). */
export const InetConf = { FORWARDING: 1, ACCEPT_REDIRECTS: 4, RP_FILTER: 8, ARP_IGNORE: 19, ARP_NOTIFY: 22 } as const;

export const Iff = { UP: 1 } as const;

/** Leave statistics out of link answers: they are half of the bytes. */
export const EXT_FILTER_SKIP_STATS = 8;

export const Ifa = {
  ADDRESS: 1,
  LOCAL: 2,
  BROADCAST: 4,
  FLAGS: 8,
  TARGET_NETNSID: 10,
  F_NODAD: 0x02,
  F_DADFAILED: 0x08,
  F_TENTATIVE: 0x40,
} as const;

export const Rta = {
  DST: 1,
  OIF: 4,
  GATEWAY: 5,
  PREFSRC: 7,
  PRIORITY: 6,
  METRICS: 8,
  MULTIPATH: 9,
  CACHEINFO: 12,
  TABLE: 15,
  METRIC_MTU: 2,
  METRIC_ADVMSS: 8,
  TABLE_MAIN: 254,
  PROTOCOL_KERNEL: 2,
  PROTOCOL_BOOT: 3,
  F_ONLINK: 4,
  SCOPE_UNIVERSE: 0,
  SCOPE_LINK: 253,
  TYPE_UNICAST: 1,
} as const;

export const Nda = { DST: 1, LLADDR: 2, IFINDEX: 8, MASTER: 9 } as const;

export const Nud = { NOARP: 0x40, PERMANENT: 0x80 } as const;

export const Ntf = { MASTER: 0x04, STICKY: 0x40 } as const;

export const Netnsa = { NSID: 1, FD: 3 } as const;
