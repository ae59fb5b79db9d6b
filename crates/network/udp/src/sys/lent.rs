//! The memory of outgoing trains, and how long ones leave it without a copy: SENDMSG_ZC over a registered buffer, by io_uring.
//!
//! Data structure: regions of equal size in one piece. Trains are built in one of them until all have left. The kernel reads a message
//! that was sent without a copy until it says so by a notification, so a region is in use again when all of its notifications are
//! there. The first region is never lent: trains leave it by the ordinary call. It is used when all others are lent, so that nothing
//! waits for a notification. Four others are as much as stays in a core's cache: with sixteen times as much the processor
//! waited longer for memory than the copy had taken (docs/decisions/024).
//!
//! Where the kernel says that it has copied after all, as it does whenever the receiver is on the same machine, the next
//! [`COPIED_REST`] long messages leave by the ordinary call, which is cheaper than a copy by this way.
//!
//! Invariant: what the kernel may read is neither written to nor freed. Sources: io_uring_enter(2), io_uring_prep_sendmsg_zc(3).

use std::io;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut, Range};
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::time::Duration;

use io_uring::{IoUring, cqueue, opcode, types};

use super::batch::Message;

/// Regions that may be lent.
const REGIONS: usize = 4;
/// Most messages of one call.
const MOST: usize = 64;
/// Bytes from which a message is cheaper to lend than to copy: the two cost the same at about 20,000.
const LONG: usize = 32 * 1024;
/// Long messages that are sent by the ordinary call after the kernel has copied one.
const COPIED_REST: u32 = 1_024;
/// Asks for notifications that tell whether the kernel has copied. Source: IORING_SEND_ZC_REPORT_USAGE of io_uring.h.
const REPORT: u16 = 1 << 3;
/// The kernel has copied. Source: IORING_NOTIF_USAGE_ZC_COPIED of io_uring.h.
const COPIED: u32 = 1 << 31;
/// How long the end of a port waits for what the network has not taken yet.
const PATIENCE: u32 = 100;
const PAUSE: Duration = Duration::from_millis(10);

/// Memory in which trains are built.
pub(crate) struct Memory {
    bytes: ManuallyDrop<Box<[u8]>>,
    lender: Option<Box<Lender>>,
}

struct Lender {
    ring: IoUring,
    region_size: usize,
    /// The region in which trains are built.
    region: usize,
    /// Notifications to come, by region.
    lent: [u32; REGIONS + 1],
    /// Notifications to come of messages that were refused: what was not sent counts as copied there.
    void: u32,
    /// Long messages that are still to be copied.
    rest: u32,
    /// The ring has failed: nothing is lent any more.
    is_broken: bool,
    /// What the kernel reads of the messages of a call beside their bytes.
    messages: Box<[Message]>,
    vectors: Box<[libc::iovec]>,
    headers: Box<[libc::msghdr]>,
    results: Box<[i32]>,
}

#[expect(unsafe_code, reason = "raw pointers in the arrays take the Send away")]
// SAFETY: the pointers in `headers` and `vectors` are written before each call and followed by the kernel only, which does not care
// which thread owns them. They point into allocations of the same value, or of the `Memory` that it is a part of.
unsafe impl Send for Lender {}

impl Memory {
    /// Memory of one region, which is never lent.
    pub(crate) fn new(size: usize) -> Memory {
        Memory { bytes: ManuallyDrop::new(vec![0; size].into_boxed_slice()), lender: None }
    }

    /// Memory of several regions of `size` bytes, of which all but one may be lent.
    ///
    /// # Errors
    /// The kernel has no io_uring for this process, does not know registered buffers in this call (before Linux 6.15), or the
    /// process may not lock so much memory.
    pub(crate) fn lendable(size: usize) -> io::Result<Memory> {
        if cfg!(miri) {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let bytes = vec![0; size * (REGIONS + 1)].into_boxed_slice();
        let lender = Lender::new(&bytes, size)?;
        Ok(Memory { bytes: ManuallyDrop::new(bytes), lender: Some(Box::new(lender)) })
    }

    /// Where the next trains are to be built, after all earlier ones have left.
    #[inline]
    pub(crate) fn next_region(&mut self) -> Range<usize> {
        let len = self.bytes.len();
        self.lender.as_mut().map_or(0..len, |lender| lender.next_region())
    }

    /// Whether a message of this length should be lent, given that it is the next to leave.
    #[inline]
    pub(crate) fn lends(&mut self, len: usize) -> bool {
        self.lender.as_mut().is_some_and(|lender| lender.lends(len))
    }

    /// How many of the first of `messages` are long enough to be lent, or too short, as the first is.
    pub(crate) fn run(messages: &[Message]) -> usize {
        let is_long = |message: &Message| message.len >= LONG;
        let first = messages.first().is_some_and(is_long);
        messages.iter().take_while(|message| is_long(message) == first).count()
    }

    /// Sends `messages`, whose bytes lie in the region of now, without blocking and without copying them. Returns how many the kernel
    /// took before the first that it refused: at least one. An error concerns the first message. Messages behind a refused one may have
    /// left as well; they arrive twice then, which QUIC allows for.
    pub(crate) fn send(&mut self, socket: BorrowedFd<'_>, messages: &[Message]) -> io::Result<usize> {
        match &mut self.lender {
            Some(lender) => lender.send(&self.bytes, socket, messages),
            None => Err(io::ErrorKind::Unsupported.into()),
        }
    }
}

impl Deref for Memory {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl DerefMut for Memory {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        let is_back = self.lender.as_mut().is_none_or(|lender| lender.take_back());
        if !is_back {
            // A packet must not leave with what comes to lie there next: all that the kernel may read stays allocated.
            std::mem::forget(self.lender.take());
            return;
        }
        #[expect(unsafe_code, reason = "memory that is lent must outlive its owner")]
        // SAFETY: `bytes` is dropped here only, and not used after. The kernel reads none of it: every notification is there.
        unsafe {
            ManuallyDrop::drop(&mut self.bytes);
        }
    }
}

impl Lender {
    fn new(bytes: &[u8], region_size: usize) -> io::Result<Lender> {
        let mut builder = IoUring::builder();
        // Notifications come with whatever call is next, not by an interrupt.
        builder.setup_coop_taskrun().setup_cqsize(8 * MOST as u32);
        let ring = builder.build(MOST as u32)?;
        let whole = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
        #[expect(unsafe_code, reason = "the kernel is told an address")]
        // SAFETY: the range is that of a slice. The kernel pins its pages; it reads them for messages only, see `send`.
        unsafe {
            ring.submitter().register_buffers(&[whole])?;
        }
        #[expect(
            unsafe_code,
            reason = "a header has padding on some systems and cannot be written as a literal"
        )]
        // SAFETY: a msghdr is integers and pointers, for all of which zero bits are a value.
        let header: libc::msghdr = unsafe { std::mem::zeroed() };
        let vector = libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };
        let mut lender = Lender {
            ring,
            region_size,
            region: 1,
            lent: [0; REGIONS + 1],
            void: 0,
            rest: 0,
            is_broken: false,
            messages: vec![Message::EMPTY; MOST].into_boxed_slice(),
            vectors: vec![vector; MOST].into_boxed_slice(),
            headers: std::iter::repeat_n(header, MOST).collect(),
            results: vec![0; MOST].into_boxed_slice(),
        };
        lender.probe(bytes)?;
        Ok(lender)
    }

    /// Whether the kernel knows the call: one that does looks for the socket first.
    fn probe(&mut self, bytes: &[u8]) -> io::Result<()> {
        const NO_SOCKET: RawFd = -1;
        let message = Message { len: 1, ..Message::EMPTY };
        match self.submit(bytes, NO_SOCKET, &[message]) {
            Err(error) if error.raw_os_error() == Some(libc::EBADF) => Ok(()),
            Err(error) => Err(error),
            Ok(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    fn next_region(&mut self) -> Range<usize> {
        self.reap();
        let is_resting = self.rest > 0 || self.is_broken;
        let free = (1..).zip(self.lent.iter().skip(1)).find(|(_, lent)| **lent == 0);
        self.region = free.filter(|_| !is_resting).map_or(0, |(region, _)| region);
        let start = self.region * self.region_size;
        start..start + self.region_size
    }

    fn lends(&mut self, len: usize) -> bool {
        if len < LONG {
            return false;
        }
        if self.rest > 0 {
            self.rest -= 1;
            return false;
        }
        self.region > 0 && !self.is_broken
    }

    fn send(&mut self, bytes: &[u8], socket: BorrowedFd<'_>, messages: &[Message]) -> io::Result<usize> {
        let own = self.region * self.region_size..(self.region + 1) * self.region_size;
        let lies_within =
            |message: &Message| message.start >= own.start && message.start + message.len <= own.end;
        assert!(self.region > 0 && messages.iter().all(lies_within), "messages of the region that is lent");
        self.submit(bytes, socket.as_raw_fd(), messages)
    }

    fn submit(&mut self, bytes: &[u8], socket: RawFd, messages: &[Message]) -> io::Result<usize> {
        let count = messages.len().min(MOST);
        for (index, message) in messages.iter().take(count).enumerate() {
            self.describe(index, bytes, message);
            let call = opcode::SendMsgZc::new(types::Fd(socket), &raw const self.headers[index]);
            let call = call.flags((libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL) as u32).ioprio(REPORT);
            let entry = call.buf_index(Some(0)).build().user_data((self.region as u64) << 32 | index as u64);
            #[expect(unsafe_code, reason = "the kernel is told addresses")]
            // SAFETY: header, vector, name and control bytes lie in boxes of this `Lender`, which are written to by the next call
            // only, when all results of this one are there; should they not come, by none. The bytes lie in the
            // `Memory`, by the assert of `send` in a region that is not written to nor freed before the notification.
            let pushed = unsafe { self.ring.submission().push(&entry) };
            pushed.map_err(io::Error::other)?;
        }
        self.results.fill(-libc::EAGAIN);
        let mut left = count;
        while left > 0 {
            match self.ring.submit_and_wait(left) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.is_broken = true;
                    return Err(error);
                }
            }
            left = left.saturating_sub(self.reap());
        }
        match self.results.iter().take(count).position(|&result| result < 0) {
            Some(0) => Err(io::Error::from_raw_os_error(-self.results[0])),
            Some(sent) => Ok(sent),
            None => Ok(count),
        }
    }

    /// Points header `index` at the parts of a message. Nothing is dereferenced here.
    fn describe(&mut self, index: usize, bytes: &[u8], message: &Message) {
        self.messages[index] = *message;
        let Message { name, control, .. } = &self.messages[index];
        let bytes = &bytes[message.start..message.start + message.len];
        let vector = &mut self.vectors[index];
        vector.iov_base = bytes.as_ptr().cast_mut().cast();
        vector.iov_len = bytes.len();
        let header = &mut self.headers[index];
        header.msg_name = name.bytes.as_ptr().cast_mut().cast();
        header.msg_namelen = name.len;
        header.msg_control = control.bytes.as_ptr().cast_mut().cast();
        // The field's type differs between C libraries.
        header.msg_controllen = control.len as _;
        header.msg_iov = &raw mut *vector;
        header.msg_iovlen = 1;
    }

    /// Takes what the kernel has told. Returns how many of it are results of messages.
    fn reap(&mut self) -> usize {
        let mut results = 0;
        for entry in self.ring.completion() {
            let (region, index) = ((entry.user_data() >> 32) as usize, entry.user_data() as u32 as usize);
            let Some(lent) = self.lent.get_mut(region) else { continue };
            if cqueue::notif(entry.flags()) {
                *lent = lent.saturating_sub(1);
                match (entry.result().cast_unsigned() & COPIED, self.void) {
                    (0, _) => {}
                    (_, 0) => self.rest = COPIED_REST,
                    (_, void) => self.void = void - 1,
                }
                continue;
            }
            let is_more = u32::from(cqueue::more(entry.flags()));
            *lent += is_more;
            self.void += if entry.result() < 0 { is_more } else { 0 };
            if let Some(result) = self.results.get_mut(index) {
                *result = entry.result();
            }
            results += 1;
        }
        results
    }

    /// Waits until nothing is lent. Returns whether that came.
    fn take_back(&mut self) -> bool {
        let pause = types::Timespec::from(PAUSE);
        for _ in 0..PATIENCE {
            self.reap();
            if self.is_broken || self.lent.iter().all(|&lent| lent == 0) {
                break;
            }
            let _ = self.ring.submitter().submit_with_args(1, &types::SubmitArgs::new().timespec(&pause));
        }
        !self.is_broken && self.lent.iter().all(|&lent| lent == 0)
    }
}

#[cfg(test)]
#[cfg(not(miri))]
mod tests;
