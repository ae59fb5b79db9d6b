//! The kernel, as Miri sees it: it follows every pointer of the headers that it is given, as the real one does.
//!
//! Miri runs no system calls. What it can find out is whether the pointers that they are given may be followed: this module
//! takes the calls' place there, with one queue of datagrams for all sockets of a thread. Compiled under Miri only.

#![expect(unsafe_code, reason = "it does to our memory what the kernel does")]
#![expect(clippy::missing_safety_doc, reason = "the contracts are those of the system calls")]

use std::cell::RefCell;
use std::collections::VecDeque;
use std::slice::{from_raw_parts, from_raw_parts_mut};

/// Bytes, name and control bytes of a datagram.
type Datagram = [Vec<u8>; 3];

std::thread_local! {
    static QUEUE: RefCell<VecDeque<Datagram>> = const { RefCell::new(VecDeque::new()) };
}

pub(super) unsafe fn sendmsg(_: i32, message: *const libc::msghdr, _: i32) -> isize {
    // SAFETY: as sendmsg(2) asks: the header, its one vector, and the three ranges are readable.
    let datagram: Datagram = unsafe {
        let header = &*message;
        assert_eq!(header.msg_iovlen, 1);
        let vector = &*header.msg_iov;
        [
            from_raw_parts(vector.iov_base.cast::<u8>(), vector.iov_len).to_vec(),
            from_raw_parts(header.msg_name.cast::<u8>(), header.msg_namelen as usize).to_vec(),
            from_raw_parts(header.msg_control.cast::<u8>(), header.msg_controllen as usize).to_vec(),
        ]
    };
    let len = datagram[0].len() as isize;
    QUEUE.with_borrow_mut(|queue| queue.push_back(datagram));
    len
}

pub(super) unsafe fn sendmmsg(fd: i32, headers: *mut libc::mmsghdr, count: u32, flags: i32) -> i32 {
    for index in 0..count as usize {
        // SAFETY: as sendmmsg(2) asks: `count` headers are writable, and each is one for sendmsg.
        unsafe {
            let header = headers.add(index);
            (*header).msg_len = sendmsg(fd, &raw const (*header).msg_hdr, flags) as u32;
        }
    }
    count as i32
}

pub(super) unsafe fn recvmsg(_: i32, message: *mut libc::msghdr, _: i32) -> isize {
    let Some([bytes, name, control]) = QUEUE.with_borrow_mut(VecDeque::pop_front) else { return -1 };
    // SAFETY: as recvmsg(2) asks: the header, its one vector, and the three ranges are writable.
    unsafe {
        let header = &mut *message;
        assert_eq!(header.msg_iovlen, 1);
        let vector = &*header.msg_iov;
        let into = |start: *mut libc::c_void, room: usize, from: &[u8]| {
            let room = from_raw_parts_mut(start.cast::<u8>(), room);
            // All of the room may be written to, whatever comes.
            room.fill(0);
            let len = room.len().min(from.len());
            room[..len].copy_from_slice(&from[..len]);
            len
        };
        header.msg_namelen = into(header.msg_name, header.msg_namelen as usize, &name) as u32;
        header.msg_controllen = into(header.msg_control, header.msg_controllen as usize, &control) as _;
        into(vector.iov_base, vector.iov_len, &bytes) as isize
    }
}

pub(super) unsafe fn recvmmsg(
    fd: i32,
    headers: *mut libc::mmsghdr,
    count: u32,
    flags: i32,
    _: *mut libc::timespec,
) -> i32 {
    for index in 0..count as usize {
        // SAFETY: as recvmmsg(2) asks: `count` headers are writable, and each is one for recvmsg.
        unsafe {
            let header = headers.add(index);
            let len = recvmsg(fd, &raw mut (*header).msg_hdr, flags);
            if len < 0 {
                return if index == 0 { -1 } else { index as i32 };
            }
            (*header).msg_len = len as u32;
        }
    }
    count as i32
}
