// XDP: hands our QUIC datagrams to the AF_XDP socket of the queue they arrived on, and everything else to the kernel.
//
// Ours is what is addressed to a port of `ports` (and, if that is set, to an address of `addresses`), whole
// (no fragments), directly above IP (no options, no extension headers), and looks like QUIC in its first byte: a long header or the
// fixed bit, which every QUIC packet has but those of peers that were allowed to grease it (RFC 9287), and we allow none.
// Up to two VLAN tags are looked past. Where no socket is in `sockets` the kernel gets the packet.
//
// All offsets are constants on each way through, because without CAP_PERFMON the verifier takes no others: looking past
// IPv4 options, which nobody sends, would cost every user a further privilege.
#include "kernel.h"

// The AF_XDP sockets by receive queue.
SECTION("maps") struct map sockets = {
    .type = MAP_SOCKETS_XDP, .key_size = 4, .value_size = 4, .max_entries = 1024};

// A bit for each UDP port: an array is looked up without a call.
SECTION("maps") struct map ports = {
    .type = MAP_ARRAY, .key_size = 4, .value_size = 8, .max_entries = 65536 / 64};

// Our addresses, IPv4 ones mapped to IPv6.
SECTION("maps") struct map addresses = {
    .type = MAP_HASH, .key_size = 16, .value_size = 1, .max_entries = 256};

// One number: whether only `addresses` are ours, and not any.
SECTION("maps") struct map only_addresses = {
    .type = MAP_ARRAY, .key_size = 4, .value_size = 4, .max_entries = 1};

struct address {
    u32 words[4];
};

INLINE int port_is_ours(u16 port) {
    u32 word = port / 64;
    u64 *bits = map_lookup(&ports, &word);
    return bits && (*bits >> (port % 64) & 1);
}

INLINE int address_is_ours(struct address *address) {
    u32 first = 0;
    u32 *only = map_lookup(&only_addresses, &first);
    return !only || !*only || map_lookup(&addresses, address);
}

INLINE int judge(struct xdp_md *context) {
    void *end = (void *)(u64)context->data_end;
    struct ethernet *ethernet = (void *)(u64)context->data;
    if ((void *)(ethernet + 1) > end)
        return XDP_PASS;
    u16 type = ethernet->type;
    void *next = ethernet + 1;

#pragma unroll
    for (int tags = 0; tags < 2; tags++) {
        if (type == network_order(TYPE_VLAN) || type == network_order(TYPE_VLAN_OUTER)) {
            struct vlan *vlan = next;
            if ((void *)(vlan + 1) > end)
                return XDP_PASS;
            type = vlan->type;
            next = vlan + 1;
        }
    }

    struct address destination = {};
    if (type == network_order(TYPE_IPV4)) {
        struct ipv4 *ip = next;
        if ((void *)(ip + 1) > end)
            return XDP_PASS;
        if (ip->version_and_words != 0x45 || ip->protocol != PROTOCOL_UDP)
            return XDP_PASS;
        // More fragments, or an offset.
        if (ip->fragment & network_order(0x3fff))
            return XDP_PASS;
        destination.words[2] = 0xffff0000;
        __builtin_memcpy(&destination.words[3], ip->destination, 4);
        next = ip + 1;
    } else if (type == network_order(TYPE_IPV6)) {
        struct ipv6 *ip = next;
        if ((void *)(ip + 1) > end || ip->next_header != PROTOCOL_UDP)
            return XDP_PASS;
        __builtin_memcpy(&destination, ip->destination, 16);
        next = ip + 1;
    } else {
        return XDP_PASS;
    }

    struct udp *udp = next;
    u8 *payload = next + sizeof(*udp);
    if ((void *)(payload + 1) > end)
        return XDP_PASS;
    // The length tells a payload from what pads a short frame.
    if (network_order(udp->length) <= sizeof(*udp) || !(*payload & 0xc0))
        return XDP_PASS;
    if (!port_is_ours(network_order(udp->destination)) || !address_is_ours(&destination))
        return XDP_PASS;
    return redirect_map(&sockets, context->rx_queue_index, XDP_PASS);
}

// For packets that lie in one buffer each; drivers refuse it where the MTU allows longer ones.
SECTION("xdp") int redirect(struct xdp_md *context) { return judge(context); }

// For packets of several buffers as well, from Linux 5.18: what is judged lies in the first.
SECTION("xdp.frags") int redirect_parts(struct xdp_md *context) { return judge(context); }

SECTION("license") const char terms[] = "MIT";
