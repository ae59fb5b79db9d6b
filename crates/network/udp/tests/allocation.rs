//! In steady state a port allocates nothing. Deleted, an allocation per packet could creep in unseen.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use base::net::{Addresses, Ecn};
use base::sink::{PacketSink, TrainPath};
use datapath::{Port, Rx, Tx};
use udp::{BindOptions, UdpPort, Variant};

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

#[expect(unsafe_code, reason = "an allocator cannot be written without")]
// SAFETY: every call is passed to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller keeps `System`'s contract, which is ours.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps `System`'s contract, which is ours.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn a_turn_allocates_nothing() {
    for variant in Variant::ALL {
        let options = BindOptions::new("127.0.0.1:0".parse().unwrap(), variant);
        let (mut a, mut b) = (UdpPort::bind(&options).unwrap(), UdpPort::bind(&options).unwrap());
        let addresses = Addresses { local: a.local_address(), peer: b.local_address() };
        let mut bytes = 0;
        let before = ALLOCATIONS.with(Cell::get);
        for _ in 0..100 {
            for _ in 0..2 {
                let room = a.begin(TrainPath::new(addresses, Ecn::Ect0), 1200).unwrap();
                for _ in 0..room {
                    a.room().fill(1);
                    a.push(1200);
                }
                a.end();
            }
            a.flush().unwrap();
            b.wait(None).unwrap();
            loop {
                let trains = b.poll().unwrap();
                if trains == 0 {
                    break;
                }
                for index in 0..trains {
                    bytes += b.train(index).bytes.len();
                }
            }
        }
        assert_eq!(ALLOCATIONS.with(Cell::get), before, "{variant:?}");
        assert_eq!(bytes, 100 * 2 * 54 * 1200);
    }
}
