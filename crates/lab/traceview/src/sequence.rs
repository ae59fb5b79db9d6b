//! The sequence of 1-RTT packets: their numbers over time, with what was lost and what was sent again.

use crate::records::{Event, number, packet};

/// Milliseconds, and the number of a packet.
pub(crate) type Marks = Vec<(f64, f64)>;

/// Numbers of 1-RTT packets over time, those of the connection's first path.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Sequence {
    pub(crate) sent: Marks,
    /// Of them, those whose content of streams had been sent before.
    pub(crate) sent_again: Marks,
    /// The largest number that was acknowledged, when that was heard.
    pub(crate) acknowledged: Marks,
    /// Sent ones, when they were declared lost.
    pub(crate) lost: Marks,
    /// In their order.
    pub(crate) received: Marks,
    /// Received behind a larger number.
    pub(crate) late: Marks,
    /// Received with content of streams that had come before.
    pub(crate) received_again: Marks,
}

/// What the content of a packet's streams was.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Content {
    /// Some of it was new, or there was none.
    New,
    /// All of it had been sent or received before.
    Repeated,
}

impl Sequence {
    pub(crate) fn on_sent(&mut self, event: &Event, content: Content) {
        let Some(mark) = mark(event) else { return };
        self.sent.push(mark);
        if content == Content::Repeated {
            self.sent_again.push(mark);
        }
    }

    pub(crate) fn on_received(&mut self, event: &Event, content: Content) {
        let Some(mark) = mark(event) else { return };
        let is_late = self.received.last().is_some_and(|(_, largest)| mark.1 < *largest);
        if is_late {
            self.late.push(mark)
        } else {
            self.received.push(mark)
        }
        if content == Content::Repeated {
            self.received_again.push(mark);
        }
    }

    pub(crate) fn on_lost(&mut self, event: &Event) {
        self.lost.extend(mark(event));
    }

    /// An acknowledgement of application data.
    pub(crate) fn on_acknowledged(&mut self, event: &Event) {
        let numbers = event.data.get("packet_numbers").and_then(serde_json::Value::as_array);
        let largest = numbers.into_iter().flatten().filter_map(number).max();
        let Some(largest) = largest.filter(|_| event.is_of_first_path) else { return };
        let largest = largest as f64;
        if self.acknowledged.last().is_none_or(|(_, before)| largest > *before) {
            self.acknowledged.push((event.time, largest));
        }
    }
}

/// Time and number of a 1-RTT packet of the first path.
fn mark(event: &Event) -> Option<(f64, f64)> {
    let header = event.data.get("header")?;
    let ty = header.get("packet_type").or_else(|| event.data.get("packet_type"))?.as_str()?;
    let (_, number) =
        packet(&event.data).filter(|_| event.is_of_first_path && ty.eq_ignore_ascii_case("1rtt"))?;
    Some((event.time, number as f64))
}
