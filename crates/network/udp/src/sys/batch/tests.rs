//! Batches through a socket; under Miri through `kernel`, which follows the pointers as the kernel would.

use super::*;
use crate::name::Family;
use std::os::fd::AsFd;

/// A socket that sends to itself, and its address. Miri has no sockets: there any descriptor does.
#[cfg(not(miri))]
fn socket() -> (std::net::UdpSocket, std::net::SocketAddr) {
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    (socket, address)
}

#[cfg(miri)]
fn socket() -> (std::io::Stdin, std::net::SocketAddr) {
    (std::io::stdin(), "127.0.0.1:9".parse().unwrap())
}

const SIZE: usize = 100;
const SLOTS: usize = 6;

/// Deleted, Miri would have nothing to run: whether each pointer that the kernel gets points at what it should, and may be
/// followed after all the borrows that come between.
#[test]
fn what_is_sent_in_batches_of_any_size_arrives_in_the_slots_that_it_should() {
    let (socket, address) = socket();
    let memory: Vec<u8> = (0..SLOTS * SIZE).map(|place| (place / SIZE) as u8).collect();
    let name = Name::of(address, Family::V4);
    let messages: Vec<Message> = (0..SLOTS)
        .map(|index| Message { name, control: Control::EMPTY, start: index * SIZE, len: SIZE - index })
        .collect();
    let (mut send, mut receive) = (SendBatch::new(SLOTS), ReceiveBatch::new(SLOTS));
    for (count, first) in [(1, 0), (1, 3), (2, 0), (3, 2), (6, 0)] {
        assert_eq!(send.send(socket.as_fd(), &memory, &messages[..count]).unwrap(), count);
        let mut room = vec![0xff; SLOTS * SIZE];
        let received = receive.receive(socket.as_fd(), &mut room, SIZE, first..first + count).unwrap();
        assert_eq!(received, count);
        for index in 0..count {
            let arrived = receive.arrived(first + index);
            assert_eq!((arrived.len, arrived.name.address()), (SIZE - index, Some(address)));
            let slot = &room[(first + index) * SIZE..][..SIZE];
            assert!(slot[..arrived.len].iter().all(|byte| *byte == index as u8), "{slot:?}");
        }
        assert!(room[..first * SIZE].iter().all(|byte| *byte == 0xff), "no slot before is touched");
    }
    // A batch may move: nothing in it points at itself.
    let mut moved = Box::new(send);
    assert_eq!(moved.send(socket.as_fd(), &memory, &messages[..2]).unwrap(), 2);
}
