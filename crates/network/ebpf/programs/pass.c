// XDP: leaves every packet to the kernel. Only the tests use it, as another's program that is in our way.
#include "kernel.h"

SECTION("xdp") int pass(struct xdp_md *context) {
    (void)context;
    return XDP_PASS;
}

SECTION("license") const char terms[] = "MIT";
