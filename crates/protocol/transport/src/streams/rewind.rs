//! Early data that the server has rejected: all that was sent begins anew, within the limits of this connection.
//! Source: RFC 9001 §4.6.2, RFC 9000 §7.4.1.
//!
//! Streams keep their numbers and what was written on them. The limits that the client remembered do not hold, and those of this
//! connection may be lower: a stream above the new limit on streams is withheld until the peer raises it.

use super::Streams;
use crate::flow::Credit;

impl Streams {
    /// Nothing of what was sent has arrived. Nothing goes until the peer's limits are known.
    pub(crate) fn rewind(&mut self) {
        self.credit.whole = Credit::default();
        self.local.iter_mut().for_each(|local| local.credit.forget_limit());
        for slot in self.slots.all() {
            let stream = &mut self.slots[slot];
            if stream.send.is_absent() || stream.id.initiator() != self.side {
                continue;
            }
            let before = stream.send.unsent();
            stream.send.rewind();
            // A stream that was reset has nothing to send, whatever was written on it.
            if stream.send.wants_send() {
                let (priority, after) = (stream.priority, stream.send.unsent());
                self.send_allowance.on_unsent(priority, before, after);
                self.unsent += after - before;
            }
            self.has_withheld = true;
            self.refresh(slot);
        }
    }

    /// Releases the streams that the peer permits by now.
    pub(super) fn release_withheld(&mut self) {
        if !core::mem::take(&mut self.has_withheld) {
            return;
        }
        for slot in self.slots.all() {
            let stream = &self.slots[slot];
            if !stream.send.is_withheld() {
                continue;
            }
            if stream.id.index() >= self.local[stream.id.dir().index()].credit.limit() {
                self.has_withheld = true;
                continue;
            }
            let limit = self.send_limit(self.slots[slot].id);
            self.slots[slot].send.release(limit);
            self.refresh(slot);
            self.check_writer(slot);
            if self.slots[slot].wants_control() {
                self.want_control(slot);
            }
        }
    }

    /// Streams that the peer does not permit yet.
    #[cfg(test)]
    pub(crate) fn withheld(&self) -> usize {
        self.slots.all().filter(|slot| self.slots[*slot].send.is_withheld()).count()
    }
}
