// What the programs use of the kernel's interface: contexts, helper numbers, packet headers.
//
// Written out here, and only what is used, so that clang alone rebuilds the objects: no kernel headers, no libbpf. The
// layouts and numbers are the kernel's stable interface (linux/bpf.h, linux/if_xdp.h). All packet fields are in
// network order; the objects are little-endian.
#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

#define SECTION(name) __attribute__((section(name), used))
#define INLINE static inline __attribute__((always_inline))

// --- maps, as aya reads them from the section "maps". Settings are maps as well: global variables need privileges beyond
// CAP_BPF, because of how aya probes for them.

struct map {
    u32 type;
    u32 key_size;
    u32 value_size;
    u32 max_entries;
    u32 flags;
};

enum { MAP_HASH = 1, MAP_ARRAY = 2, MAP_SOCKETS_XDP = 17, MAP_SOCKETS_REUSEPORT = 20 };

// --- helpers, called by number

static void *(*const map_lookup)(void *map, const void *key) = (void *)1;
static long (*const load_bytes)(const void *context, u32 offset, void *to, u32 length) = (void *)26;
static long (*const redirect_map)(void *map, u64 key, u64 flags) = (void *)51;
static long (*const select_reuseport)(void *context, void *map, void *key, u64 flags) = (void *)82;

// --- XDP

enum { XDP_PASS = 2 };

struct xdp_md {
    u32 data;
    u32 data_end;
    u32 data_meta;
    u32 ingress_ifindex;
    u32 rx_queue_index;
    u32 egress_ifindex;
};

// --- sk_reuseport. Its context is used only through helpers, whose offsets count from the UDP header.

enum { SK_PASS = 1 };

// --- packets

INLINE u16 network_order(u16 value) { return (u16)(value << 8 | value >> 8); }

enum { TYPE_IPV4 = 0x0800, TYPE_IPV6 = 0x86dd, TYPE_VLAN = 0x8100, TYPE_VLAN_OUTER = 0x88a8, PROTOCOL_UDP = 17 };

struct ethernet {
    u8 destination[6];
    u8 source[6];
    u16 type;
};

struct vlan {
    u16 tag;
    u16 type;
};

struct ipv4 {
    u8 version_and_words;
    u8 tos;
    u16 length;
    u16 identification;
    u16 fragment;
    u8 ttl;
    u8 protocol;
    u16 checksum;
    u8 source[4];
    u8 destination[4];
};

struct ipv6 {
    u8 version_class_flow[4];
    u16 length;
    u8 next_header;
    u8 hop_limit;
    u8 source[16];
    u8 destination[16];
};

struct udp {
    u16 source;
    u16 destination;
    u16 length;
    u16 checksum;
};
