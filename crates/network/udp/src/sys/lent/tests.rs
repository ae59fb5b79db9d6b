//! Lent memory on loopback, where the kernel takes it, copies after all, and says so.

use super::*;
use crate::control::{Control, Outgoing};
use crate::name::{Family, Name};
use base::net::Ecn;
use std::net::UdpSocket;
use std::os::fd::AsFd;

const SIZE: usize = 256 * 1024;
const TRAIN: usize = 40_000;

/// Memory, or `None` where the kernel has none of this; that is said.
fn lendable() -> Option<Memory> {
    let memory = Memory::lendable(SIZE);
    if let Err(error) = &memory {
        requirements::missing(format_args!("memory cannot be lent: {error}"));
    }
    memory.ok()
}

fn sockets() -> (UdpSocket, UdpSocket, Name) {
    let (from, to) = (UdpSocket::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
    to.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let name = Name::of(to.local_addr().unwrap(), Family::V4);
    (from, to, name)
}

/// A message of one long datagram.
fn message(name: Name, start: usize, len: usize) -> Message {
    Message { name, control: Control::EMPTY, start, len }
}

impl Memory {
    fn lender(&mut self) -> &mut Lender {
        self.lender.as_mut().unwrap()
    }
}

/// Deleted, a train could leave with bytes of another, or memory be written to while the kernel reads it.
#[test]
fn what_is_lent_arrives_and_its_region_rests_until_it_is_back() {
    let Some(mut memory) = lendable() else { return };
    let (from, to, name) = sockets();
    let region = memory.next_region();
    assert_eq!(region, SIZE..2 * SIZE, "the first region is never lent");
    let messages = [0, 1].map(|n| message(name, region.start + n * TRAIN, TRAIN));
    for (n, message) in messages.iter().enumerate() {
        memory[message.start..][..TRAIN].fill(7 + n as u8);
    }
    assert!(memory.lends(TRAIN) && !memory.lends(1_200), "only long messages are worth it");
    assert_eq!(memory.send(from.as_fd(), &messages).unwrap(), 2);
    let mut buffer = vec![0; 65_536];
    for n in [7, 8] {
        assert_eq!(to.recv(&mut buffer).unwrap(), TRAIN);
        assert!(buffer[..TRAIN].iter().all(|byte| *byte == n));
    }
    assert!(memory.lender().take_back(), "the kernel has told that it is done");
    assert_eq!(memory.lender().lent, [0; REGIONS + 1]);
}

/// Deleted, a server whose clients are on the same machine would pay for a copy and for notifications.
#[test]
fn after_the_kernel_has_copied_long_messages_leave_by_the_ordinary_call_for_a_while() {
    let Some(mut memory) = lendable() else { return };
    let (from, _to, name) = sockets();
    let region = memory.next_region();
    assert!(memory.lends(TRAIN));
    memory.send(from.as_fd(), &[message(name, region.start, TRAIN)]).unwrap();
    assert!(memory.lender().take_back());
    assert_eq!(memory.lender().rest, COPIED_REST, "on loopback the kernel copies");
    assert_eq!(memory.next_region(), 0..SIZE);
    for _ in 0..COPIED_REST {
        assert!(!memory.lends(TRAIN));
    }
    assert!(!memory.lends(TRAIN), "the region of now is not one to lend");
    assert_eq!(memory.next_region(), SIZE..2 * SIZE, "then it is tried again");
    assert!(memory.lends(TRAIN));
}

/// Deleted, a port could wait for notifications, or build trains in memory that the kernel still reads.
#[test]
fn a_region_that_is_lent_is_not_the_next_and_when_all_are_the_first_is() {
    let Some(mut memory) = lendable() else { return };
    memory.lender().lent = [0, 1, 1, 0, 1];
    assert_eq!(memory.next_region(), 3 * SIZE..4 * SIZE);
    memory.lender().lent = [0, 1, 1, 1, 1];
    assert_eq!(memory.next_region(), 0..SIZE);
    assert!(!memory.lends(TRAIN));
    memory.lender().lent = [0; REGIONS + 1];
}

#[test]
fn what_the_kernel_refuses_is_told_and_what_was_before_it_has_left() {
    let Some(mut memory) = lendable() else { return };
    let (from, to, name) = sockets();
    let start = memory.next_region().start;
    // Longer than any datagram.
    let bad = message(name, start + TRAIN, 65_600);
    let error = memory.send(from.as_fd(), &[bad]).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EMSGSIZE));
    assert_eq!(memory.send(from.as_fd(), &[message(name, start, TRAIN), bad]).unwrap(), 1);
    assert_eq!(to.recv(&mut vec![0; 65_536]).unwrap(), TRAIN);
    assert!(memory.lender().take_back());
}

/// Deleted, ECN and segmentation could be lost on the way through the ring.
#[test]
fn what_goes_beside_a_lent_message_goes_with_it() {
    let Some(mut memory) = lendable() else { return };
    let (from, to, name) = sockets();
    let start = memory.next_region().start;
    let mut control = Control::EMPTY;
    let outgoing = Outgoing { segment_size: Some(1_000), ecn: Ecn::Ect0, source: None, departs: None };
    control.set(&outgoing, to.local_addr().unwrap().ip(), Family::V4);
    memory.send(from.as_fd(), &[Message { name, control, start, len: TRAIN }]).unwrap();
    let mut buffer = vec![0; 65_536];
    for _ in 0..TRAIN / 1_000 {
        assert_eq!(to.recv(&mut buffer).unwrap(), 1_000);
    }
    assert!(memory.lender().take_back());
}

#[test]
fn messages_are_told_apart_by_their_length() {
    let lens = |lens: &[usize]| {
        let messages: Vec<Message> = lens.iter().map(|&len| Message { len, ..Message::EMPTY }).collect();
        Memory::run(&messages)
    };
    assert_eq!(lens(&[LONG, TRAIN, 9, TRAIN]), 2);
    assert_eq!(lens(&[9, LONG - 1, LONG]), 2);
    assert_eq!(lens(&[]), 0);
}
