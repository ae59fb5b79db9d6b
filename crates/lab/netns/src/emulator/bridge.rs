//! The emulator's thread: receives at both ends, asks for fates, holds, sends.
//!
//! A turn takes a batch from each end, sends what is due, and sleeps until the next piece is due or a frame comes. While the
//! line is busy and its delay is long, it does not wake for each frame: frames wait in the kernel for a quarter of the delay, at
//! most 250 µs, and the kernel's time stamp tells when each one came. So the number of wake-ups is bounded and the delay still exact.
//!
//! Invariant: no piece leaves early.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};

use link::Waits;
use nix::errno::Errno;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::{ClockId, Timespec, clock_gettime};

use super::frame::{Carries, Layout, VNET};
use super::held::{Held, HeldQueue};
use super::link_state::LinkState;
use super::mtu::{self, Limits};
use super::options::{Counters, Direction, LinkOptions};
use super::pool::{Buffer, Pool};
use super::rebind::{OldPorts, Rebinder, Scope};
use super::socket::{Arrival, BATCH, PacketSocket};
use super::train::{self, Line, Piece};

/// Memory for frames under way, per direction: 200 ms at 10 Gbit/s.
const HELD_BYTES: usize = 256 << 20;
/// The longest time for which frames are left in the kernel.
const LONGEST_NAP: u64 = 250_000;
/// Below this a nap is not worth it.
const SHORTEST_NAP: u64 = 50_000;

/// What the handle and the thread share.
#[derive(Debug, Default)]
pub(crate) struct Control {
    pub(crate) options: [LinkOptions; 2],
    /// Set by the handle when `options` or `rebind` changed, when it asks something, or when the thread must end.
    pub(crate) has_news: bool,
    pub(crate) must_end: bool,
    /// Forget the ports after this many more bytes of UDP payload from the left.
    pub(crate) rebind: Option<(u64, OldPorts, Scope)>,
    pub(crate) counters: [Counters; 2],
    /// Who asks how long datagrams have waited, and in which direction: the counts are too long to be published each time.
    pub(crate) questions: Vec<(Direction, Sender<Waits>)>,
    /// Frames that the kernel dropped before the thread could read them; the handle asks.
    pub(crate) missed: [u64; 2],
    /// Why the thread ended by itself.
    pub(crate) failure: Option<String>,
}

/// The control as both sides see it; what a panicking holder left behind is still good.
pub(crate) fn with_control<T>(control: &Mutex<Control>, work: impl FnOnce(&mut Control) -> T) -> T {
    work(&mut control.lock().unwrap_or_else(PoisonError::into_inner))
}

/// One direction.
struct BridgeDirection {
    direction: Direction,
    judge: LinkState,
    held: HeldQueue,
    pool: Pool,
    counters: Counters,
    landings: [Buffer; BATCH],
    pieces: Vec<Piece>,
    delay: u64,
}

/// All of the thread's state.
pub(crate) struct Bridge {
    ends: [PacketSocket; 2],
    lanes: [BridgeDirection; 2],
    rebinder: Rebinder,
    rebind_in: Option<(u64, OldPorts, Scope)>,
    control: Arc<Mutex<Control>>,
    waker: Arc<OwnedFd>,
    spin: u64,
    limits: Limits,
}

impl Bridge {
    /// To be made on the thread that runs it: buffers are not shared between threads.
    pub(crate) fn new(
        ends: [PacketSocket; 2],
        control: Arc<Mutex<Control>>,
        waker: Arc<OwnedFd>,
        spin: u64,
    ) -> Bridge {
        let options = with_control(&control, |control| control.options.clone());
        let lanes =
            Direction::BOTH.map(|direction| BridgeDirection::new(direction, &options[direction.index()]));
        Bridge {
            ends,
            lanes,
            rebinder: Rebinder::default(),
            rebind_in: None,
            control,
            waker,
            spin,
            limits: mtu::unlimited(),
        }
    }

    /// The same link between hosts that take packets up to `limits`.
    pub(crate) fn limited_by(self, limits: Limits) -> Bridge {
        Bridge { limits, ..self }
    }

    /// Runs until the handle is dropped, or a socket fails for good.
    pub(crate) fn run(mut self) {
        let mut is_busy = false;
        loop {
            match self.turn() {
                Ok(received) => {
                    is_busy = received > 0 || (is_busy && self.next_at().is_some() && self.naps())
                }
                Err(error) => {
                    with_control(&self.control, |control| {
                        control.failure = Some(format!("the link emulator stopped: {error}"))
                    });
                    return;
                }
            }
            if self.reads_news() {
                return;
            }
            self.wait(is_busy);
        }
    }

    /// Publishes counters and takes the handle's wishes; true when it is time to end.
    fn reads_news(&mut self) -> bool {
        let Bridge { lanes, rebind_in, waker, .. } = self;
        with_control(&self.control, |control| {
            control.counters = [lanes[0].counters, lanes[1].counters];
            if !std::mem::take(&mut control.has_news) {
                return control.must_end;
            }
            // Empties the event descriptor; that it was empty is no matter.
            let _ = rustix::io::read(&**waker, &mut [0_u8; 8]);
            for (lane, options) in lanes.iter_mut().zip(&control.options) {
                lane.judge.change(options);
                lane.delay = u64::try_from(options.delay.as_nanos()).unwrap_or(u64::MAX);
            }
            for (direction, answer) in control.questions.drain(..) {
                // Who has gone meanwhile does not want it.
                let _ = answer.send(lanes[direction.index()].judge.waits().clone());
            }
            if let Some(wanted) = control.rebind.take() {
                *rebind_in = Some(wanted);
            }
            control.must_end
        })
    }

    /// Receives a batch at each end and sends what is due; says how many frames came.
    fn turn(&mut self) -> io::Result<usize> {
        let mut received = 0;
        for index in 0..2 {
            received += self.receive(index)?;
            let [left, right] = &mut self.ends;
            let far = if index == 0 { right } else { left };
            self.lanes[index].send_due(far)?;
        }
        Ok(received)
    }

    fn receive(&mut self, index: usize) -> io::Result<usize> {
        let mut arrivals = [Arrival { length: 0, wall_nanos: None }; BATCH];
        let count = self.ends[index].receive(&mut self.lanes[index].landings, &mut arrivals)?;
        if count == 0 {
            return Ok(0);
        }
        // After the frames: a frame that was sent after a change of an option must find it in force.
        self.reads_news();
        let far = 1 - index;
        self.lanes[index].judge.limit(self.limits[far].load(Ordering::Relaxed));
        let now = clock(ClockId::Monotonic);
        let wall = clock(ClockId::Realtime);
        for (n, arrival) in arrivals[..count].iter().enumerate() {
            // A wall clock that was set meanwhile must not delay frames for long.
            let age = arrival.wall_nanos.map_or(0, |at| wall.saturating_sub(at).min(1_000_000_000));
            self.admit(index, n, *arrival, now.saturating_sub(age));
        }
        Ok(count)
    }

    /// Takes the frame in landing `n` of lane `index`, which came at `at`.
    fn admit(&mut self, index: usize, n: usize, arrival: Arrival, at: u64) {
        let lane = &mut self.lanes[index];
        let Some(frame) =
            std::rc::Rc::get_mut(&mut lane.landings[n]).and_then(|bytes| bytes.get_mut(..arrival.length))
        else {
            return;
        };
        if frame.len() < VNET {
            return;
        }
        let layout = Layout::of(frame);
        layout.mend_hint(frame);
        lane.counters.frames += 1;
        lane.counters.datagrams += layout.datagrams() as u64;
        if layout.carries == Carries::Udp {
            lane.counters.udp_datagrams += layout.datagrams() as u64;
        }
        lane.counters.bytes += (frame.len() - VNET) as u64;
        if !translate(&mut self.rebinder, &mut self.rebind_in, lane.direction, (frame, &layout)) {
            lane.counters.stale += layout.datagrams() as u64;
            return;
        }
        train::cut(
            frame,
            &layout,
            at,
            Line { judge: &mut lane.judge, counters: &mut lane.counters, pieces: &mut lane.pieces },
        );
        lane.hold(n, &layout);
    }

    fn next_at(&self) -> Option<u64> {
        self.lanes.iter().filter_map(|lane| lane.held.next_at()).min()
    }

    /// How long frames may be left in the kernel; 0 for delays that are too short for it.
    fn nap(&self) -> u64 {
        let shortest = self.lanes.iter().map(|lane| lane.delay).min().unwrap_or(0);
        (shortest / 4).min(LONGEST_NAP)
    }

    fn naps(&self) -> bool {
        self.nap() >= SHORTEST_NAP
    }

    /// Sleeps until the next piece is due or something comes.
    fn wait(&self, is_busy: bool) {
        let now = clock(ClockId::Monotonic);
        let is_napping = is_busy && self.naps();
        if is_busy && !is_napping {
            return;
        }
        let nap_ends = is_napping.then(|| now.saturating_add(self.nap()));
        let until = [self.next_at(), nap_ends].into_iter().flatten().min();
        let timeout = until.map(|until| until.saturating_sub(now));
        if timeout.is_some_and(|timeout| timeout <= self.spin) {
            std::hint::spin_loop();
            return;
        }
        let timeout = timeout.map(|timeout| {
            let timeout = timeout - self.spin;
            Timespec { tv_sec: (timeout / 1_000_000_000) as i64, tv_nsec: (timeout % 1_000_000_000) as i64 }
        });
        let mut descriptors = [
            PollFd::from_borrowed_fd(self.waker.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(self.ends[0].as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(self.ends[1].as_fd(), PollFlags::IN),
        ];
        let watched = if is_napping { 1 } else { 3 };
        // An interrupted sleep is a short one.
        let _ = poll(&mut descriptors[..watched], timeout.as_ref());
    }
}

/// Lets the address translator work on a frame; false if it belongs to a port that is forgotten.
fn translate(
    rebinder: &mut Rebinder,
    rebind_in: &mut Option<(u64, OldPorts, Scope)>,
    direction: Direction,
    (frame, layout): (&mut [u8], &Layout),
) -> bool {
    if direction == Direction::ToLeft {
        return rebinder.returns(frame, layout);
    }
    if let Some((left, old, scope)) = rebind_in
        && layout.carries == Carries::Udp
    {
        let payload = (layout.end - layout.payload) as u64;
        if *left <= payload {
            rebinder.renew(*old, *scope);
            *rebind_in = None;
        } else {
            *left -= payload;
        }
    }
    rebinder.leaves(frame, layout);
    true
}

impl BridgeDirection {
    fn new(direction: Direction, options: &LinkOptions) -> BridgeDirection {
        let mut pool = Pool::new(HELD_BYTES);
        BridgeDirection {
            direction,
            judge: LinkState::new(options.clone()),
            held: HeldQueue::default(),
            counters: Counters::default(),
            landings: std::array::from_fn(|_| pool.landing()),
            pool,
            pieces: Vec::new(),
            delay: u64::try_from(options.delay.as_nanos()).unwrap_or(u64::MAX),
        }
    }

    /// Puts the pieces of the frame in landing `n` into the queue.
    fn hold(&mut self, n: usize, layout: &Layout) {
        let Some(last) = self.pieces.pop() else { return };
        let Some(buffer) = self.pool.keep(&mut self.landings[n], layout.end) else {
            self.counters.overflowed += layout.datagrams() as u64;
            return;
        };
        for piece in self.pieces.drain(..) {
            self.held.insert(Held { piece, buffer: Buffer::clone(&buffer) });
        }
        self.held.insert(Held { piece: last, buffer });
    }

    fn send_due(&mut self, far: &mut PacketSocket) -> io::Result<()> {
        loop {
            let now = clock(ClockId::Monotonic);
            let due = self.held.due(now, BATCH);
            if due == 0 {
                return Ok(());
            }
            let worst = &mut self.counters.worst_late_nanos;
            *worst = self.held.overdue(now).max(*worst);
            let sent = match far.send(&self.held, due) {
                Ok(sent) => sent,
                Err(Errno::EINTR) => continue,
                Err(error @ (Errno::EBADF | Errno::EFAULT | Errno::ENOTSOCK)) => return Err(error.into()),
                // The first piece was refused, for the moment or for what it is: a link drops it. The next one may pass.
                Err(_) => 0,
            };
            for n in 0..sent.max(1) {
                let Some(held) = self.held.take_first() else { break };
                if n < sent {
                    self.counters.sent_frames += 1;
                    self.counters.sent_bytes += held.len().saturating_sub(VNET) as u64;
                } else {
                    self.counters.refused += 1;
                }
                self.pool.release(held.buffer);
            }
        }
    }
}

fn clock(id: ClockId) -> u64 {
    let now = clock_gettime(id);
    u64::try_from(now.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0)
}
