//! sendmmsg and recvmmsg over arrays that are allocated once.
//!
//! The kernel wants arrays of headers full of pointers: to names, to control buffers, to byte ranges. They are written
//! anew before every call from borrowed slices, and mean nothing after it. So no pointer outlives a borrow, the safe
//! callers cannot hand in a dangling one, and moving a batch moves nothing that is pointed at. Writing the pointers costs
//! a few nanoseconds a message; the cheapest message costs the kernel some hundred.

use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;

#[cfg(miri)]
use super::kernel;
#[cfg(not(miri))]
use libc as kernel;

use crate::control::Control;
use crate::name::Name;

/// An outgoing message: `len` bytes at `start` of the memory that is given beside it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Message {
    pub(crate) name: Name,
    pub(crate) control: Control,
    pub(crate) start: usize,
    pub(crate) len: usize,
}

impl Message {
    pub(crate) const EMPTY: Message =
        Message { name: Name::EMPTY, control: Control::EMPTY, start: 0, len: 0 };
}

/// An incoming message, as the kernel left it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrived {
    pub(crate) name: Name,
    pub(crate) control: Control,
    pub(crate) len: usize,
    pub(crate) flags: i32,
}

impl Arrived {
    const EMPTY: Arrived = Arrived { name: Name::EMPTY, control: Control::EMPTY, len: 0, flags: 0 };
}

/// Header and vector arrays of one direction.
struct Headers {
    headers: Box<[libc::mmsghdr]>,
    vectors: Box<[libc::iovec]>,
}

#[expect(unsafe_code, reason = "raw pointers in the arrays take the Send away")]
// SAFETY: the pointers in the arrays are written before each system call and never followed outside of it, so it does
// not matter which thread owns them in between.
unsafe impl Send for Headers {}

impl Headers {
    fn new(capacity: usize) -> Headers {
        #[expect(
            unsafe_code,
            reason = "a header has padding on some systems and cannot be written as a literal"
        )]
        // SAFETY: an mmsghdr is integers and pointers, for all of which zero bits are a value.
        let empty: libc::mmsghdr = unsafe { std::mem::zeroed() };
        let vector = libc::iovec { iov_base: ptr::null_mut(), iov_len: 0 };
        let headers = std::iter::repeat_n(empty, capacity).collect();
        Headers { headers, vectors: vec![vector; capacity].into_boxed_slice() }
    }

    /// Points header `index` at its parts. Nothing is dereferenced here.
    fn set(
        &mut self,
        index: usize,
        bytes: (*mut u8, usize),
        name: (*mut u8, u32),
        control: (*mut u8, usize),
    ) {
        let vector = &mut self.vectors[index];
        vector.iov_base = bytes.0.cast();
        vector.iov_len = bytes.1;
        let header = &mut self.headers[index].msg_hdr;
        header.msg_name = name.0.cast();
        header.msg_namelen = name.1;
        header.msg_control = control.0.cast();
        // The field's type differs between C libraries.
        header.msg_controllen = control.1 as _;
        header.msg_iovlen = 1;
        header.msg_flags = 0;
    }

    /// Points the headers `slots` at their vectors, last, so that no later borrow comes between, and returns the first.
    fn link(&mut self, slots: Range<usize>) -> *mut libc::mmsghdr {
        let vectors = self.vectors.as_mut_ptr();
        let headers = &mut self.headers[slots.clone()];
        for (header, index) in headers.iter_mut().zip(slots) {
            header.msg_hdr.msg_iov = vectors.wrapping_add(index);
        }
        headers.as_mut_ptr()
    }
}

/// Sends batches.
pub(crate) struct SendBatch(Headers);

impl SendBatch {
    pub(crate) fn new(capacity: usize) -> SendBatch {
        SendBatch(Headers::new(capacity))
    }

    /// Sends `messages`, whose bytes lie in `memory`, without blocking, and returns how many the kernel took: at least
    /// one. An error concerns the first message. A single message leaves by sendmsg.
    pub(crate) fn send(
        &mut self,
        socket: BorrowedFd<'_>,
        memory: &[u8],
        messages: &[Message],
    ) -> io::Result<usize> {
        let count = messages.len();
        for (index, message) in messages.iter().enumerate() {
            let bytes = &memory[message.start..message.start + message.len];
            let Message { name, control, .. } = message;
            self.0.set(
                index,
                (bytes.as_ptr().cast_mut(), bytes.len()),
                (name.bytes.as_ptr().cast_mut(), name.len),
                (control.bytes.as_ptr().cast_mut(), control.len),
            );
        }
        let headers = self.0.link(0..count);
        let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
        #[expect(unsafe_code, reason = "no safe wrapper has sendmmsg")]
        // SAFETY: the descriptor is open while borrowed. The first `count` headers exist (`set` checked each index) and
        // point at one vector each, which spans `bytes` of `memory`, and at name and control bytes of `messages`; all
        // are borrowed across the call, the lengths are those of the slices or below, and sending only reads through
        // them. The kernel writes only `msg_len` of the headers, which are borrowed mutably.
        let result = unsafe {
            if count == 1 {
                let length = kernel::sendmsg(socket.as_raw_fd(), &raw const (*headers).msg_hdr, flags);
                if length < 0 { -1 } else { 1 }
            } else {
                kernel::sendmmsg(socket.as_raw_fd(), headers, count as _, flags as _) as isize
            }
        };
        usize::try_from(result).map_err(|_| io::Error::last_os_error())
    }
}

/// Receives batches.
pub(crate) struct ReceiveBatch {
    headers: Headers,
    arrived: Box<[Arrived]>,
}

impl ReceiveBatch {
    pub(crate) fn new(capacity: usize) -> ReceiveBatch {
        ReceiveBatch {
            headers: Headers::new(capacity),
            arrived: vec![Arrived::EMPTY; capacity].into_boxed_slice(),
        }
    }

    /// What the last call received.
    pub(crate) fn arrived(&self, index: usize) -> &Arrived {
        &self.arrived[index]
    }

    /// Receives without blocking into `slots`: the message of slot `i` goes to the `i`-th `stride` bytes of `memory`.
    /// Returns how many came, at least one; they fill the slots in order. A single slot is filled by recvmsg.
    pub(crate) fn receive(
        &mut self,
        socket: BorrowedFd<'_>,
        memory: &mut [u8],
        stride: usize,
        slots: Range<usize>,
    ) -> io::Result<usize> {
        let count = slots.len();
        assert!(slots.end <= self.arrived.len() && slots.end * stride <= memory.len(), "slots have memory");
        let buffers = memory.chunks_exact_mut(stride).zip(&mut self.arrived).enumerate();
        for (index, (buffer, arrived)) in buffers.skip(slots.start).take(count) {
            let Name { bytes: name, .. } = &mut arrived.name;
            let Control { bytes: control, .. } = &mut arrived.control;
            self.headers.set(
                index,
                (buffer.as_mut_ptr(), buffer.len()),
                (name.as_mut_ptr(), name.len() as u32),
                (control.as_mut_ptr(), control.len()),
            );
        }
        let headers = self.headers.link(slots.clone());
        let flags = libc::MSG_DONTWAIT;
        #[expect(unsafe_code, reason = "no safe wrapper has recvmmsg")]
        // SAFETY: the descriptor is open while borrowed. The headers of `slots` exist (`link` checked) and, by the assert,
        // each was just pointed at one vector, which spans its buffer, and at the name and control bytes of its place
        // in `arrived`; buffers and places are disjoint mutable borrows that live across the call, and each length is
        // that of the slice or array behind the pointer. With a null timeout the kernel does not touch one.
        let result = unsafe {
            if count == 1 {
                let length = kernel::recvmsg(socket.as_raw_fd(), &raw mut (*headers).msg_hdr, flags);
                (*headers).msg_len = u32::try_from(length).unwrap_or(0);
                if length < 0 { -1 } else { 1 }
            } else {
                kernel::recvmmsg(socket.as_raw_fd(), headers, count as _, flags as _, ptr::null_mut())
                    as isize
            }
        };
        let received = usize::try_from(result).map_err(|_| io::Error::last_os_error())?;
        let taken = self.headers.headers.iter().zip(&mut self.arrived).skip(slots.start).take(received);
        for (header, arrived) in taken {
            arrived.len = header.msg_len as usize;
            arrived.flags = header.msg_hdr.msg_flags;
            arrived.name.len = header.msg_hdr.msg_namelen;
            #[allow(clippy::unnecessary_cast, clippy::allow_attributes, reason = "a narrower type in musl")]
            let controls = header.msg_hdr.msg_controllen as usize;
            arrived.control.len = controls;
        }
        Ok(received)
    }
}

#[cfg(test)]
mod tests;
