// sk_reuseport: gives a datagram to the worker that its connection ID names.
//
// The worker's number is byte 3 of the destination connection ID, modulo the number of workers: in IDs of ours it was
// put there, in those that clients choose it is random, so all packets of a handshake meet at one worker as well. A long
// header has the ID's length at byte 5 and the ID behind it; a short one has the ID, of 8 bytes, at byte 1. What is too
// short for that goes to worker 0. Where a worker has no socket, the kernel chooses as if there were no program.
#include "kernel.h"

enum { UDP_HEADER = 8, WORKER_IN_ID = 3, LONG_ID_LENGTH = 5, LONG_ID = 6, SHORT_ID = 1 };

// The worker for each value of that byte, filled in by the loader. Compilers differ in how they divide, so the program
// leaves that to others.
SECTION("maps") struct map worker_of = {
    .type = MAP_ARRAY, .key_size = 4, .value_size = 4, .max_entries = 256};

// The sockets by worker.
SECTION("maps") struct map sockets = {
    .type = MAP_SOCKETS_REUSEPORT, .key_size = 4, .value_size = 4, .max_entries = 255};

SECTION("sk_reuseport") int steer(void *context) {
    u8 head[LONG_ID + WORKER_IN_ID + 1] = {};
    u32 number = 0;
    // A load that fails leaves zeroes: a short header then has 0 there, and a long one an ID that is too short.
    if (load_bytes(context, UDP_HEADER, head, sizeof(head)) < 0)
        load_bytes(context, UDP_HEADER, head, SHORT_ID + WORKER_IN_ID + 1);
    if (!(head[0] & 0x80))
        number = head[SHORT_ID + WORKER_IN_ID];
    else if (head[LONG_ID_LENGTH] > WORKER_IN_ID)
        number = head[LONG_ID + WORKER_IN_ID];
    u32 *worker = map_lookup(&worker_of, &number);
    if (worker)
        select_reuseport(context, &sockets, worker, 0);
    return SK_PASS;
}

SECTION("license") const char terms[] = "MIT";
