//! Loss detection and congestion control as arithmetic: RFC 9002, RFC 9438, the sent-packet ledger, the pacer.
//!
//! Nothing here knows a connection, a socket or a clock: `now` is an argument, every event returns an outcome, and the
//! caller decides what to do with it. What must be summed over a connection (bytes in flight over three packet-number
//! spaces, one congestion controller per path) is summed by the caller.
//!
//! | module | holds | one per |
//! |---|---|---|
//! | [`ledger`] | what was sent and has not been settled | packet-number space |
//! | [`ack`] | what was received and must be acknowledged | packet-number space |
//! | [`rtt`] | the round-trip estimate | path |
//! | [`congestion`] | the window and the pacing rate | path |
//! | [`pacer`] | when the window may be used | path |
//! | [`mtu`] | the largest packet that the path carries | path |
//! | [`ecn`] | whether the path carries ECN marks | path |
//! | [`timers`] | when loss detection acts next, as pure functions | – |
//!
//! The life of an ACK frame: [`ledger::Ledger::on_ack`] → [`rtt::Rtt::on_sample`] → [`ecn::EcnValidator::on_ack`] →
//! [`ledger::Ledger::detect_losses`] → [`congestion::Controller::on_congestion`] or
//! [`congestion::Controller::on_ack`] → [`pacer::Pacer::set_rate`].
#![forbid(unsafe_code)]

pub mod ack;
pub mod congestion;
pub mod ecn;
pub mod ledger;
pub mod mtu;
pub mod one_way;
pub mod pacer;
pub mod packet;
pub mod rate;
pub mod reordering;
pub mod rtt;
#[cfg(test)]
mod testing;
pub mod timers;
