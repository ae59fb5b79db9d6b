//! Which of a server's addresses is asked: all connections of a run go to the same one, so that they measure one thing.
//!
//! Each address is asked for the versions of QUIC that it speaks. The first gets a head start, then the next one is asked beside
//! it (RFC 8305), and the first that answers is taken. An address that the network reports as unreachable is passed over at
//! once. Where none answers, the first that was not passed over is taken: a server may keep silent to such questions, and the
//! run itself will tell. Rejected: a handshake with each, which needs a path, a worker and a certificate before there is a run.

use client::error::GetError;
use client::fault::Fault;
use client::probe::{Probe, ProbeResult, is_about_address};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

/// The head start of each address. Source: RFC 8305 §5.
const HEAD_START: Duration = Duration::from_millis(250);
/// How long the last address has to answer.
const PATIENCE: Duration = Duration::from_millis(500);
const STEP: Duration = Duration::from_millis(5);

/// The first of the addresses at which a QUIC server answers. A single one is taken as it is: the run itself will tell.
///
/// # Errors
/// No server answers at any of them.
pub fn choose_address(addresses: &[SocketAddr]) -> Result<SocketAddr, GetError> {
    if let [only] = addresses {
        return Ok(*only);
    }
    let mut untried: VecDeque<SocketAddr> = addresses.iter().copied().collect();
    let mut times: Vec<(SocketAddr, Probe)> = Vec::new();
    let mut fault = GetError::Usage("there is no address to ask".into());
    let mut waited = Duration::ZERO;
    loop {
        let is_next = times.is_empty() || waited >= HEAD_START;
        if is_next && let Some(address) = untried.pop_front() {
            waited = Duration::ZERO;
            match Probe::for_versions(address) {
                Ok(probe) => times.push((address, probe)),
                Err(error) => fault = Fault::of_network(address, error.kind()),
            }
            continue;
        }
        if times.is_empty() {
            return Err(fault);
        }
        if untried.is_empty() && waited >= PATIENCE {
            return times.first().map(|(address, _)| *address).ok_or(fault);
        }
        std::thread::sleep(STEP);
        waited += STEP;
        let mut answered = None;
        times.retain(|(address, probe)| match probe.news() {
            ProbeResult::Versions => {
                answered = answered.or(Some(*address));
                true
            }
            ProbeResult::Bad(error) if is_about_address(error.kind()) => {
                fault = Fault::of_network(*address, error.kind());
                false
            }
            ProbeResult::None | ProbeResult::Bad(_) => true,
        });
        if let Some(address) = answered {
            return Ok(address);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;

    fn bind() -> (UdpSocket, SocketAddr) {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        (socket, address)
    }

    #[test]
    fn an_address_where_nobody_listens_is_passed_over() {
        let ((closed, first), (_open, second)) = (bind(), bind());
        drop(closed);
        assert_eq!(choose_address(&[first, second]).unwrap(), second);
        assert_eq!(choose_address(&[first]).unwrap(), first, "a single one is not asked about");
        assert_eq!(choose_address(&[first, first]).unwrap_err().exit_code(), 7);
        assert!(choose_address(&[]).is_err());
    }

    /// Deleted, a run could ask an address for ever that swallows what it gets, where `tercel get` goes on to the next one.
    #[test]
    fn an_address_that_is_silent_is_passed_over_for_one_that_answers() {
        let ((_silent, first), (server, second)) = (bind(), bind());
        let answering = std::thread::spawn(move || {
            let mut question = [0; 2_000];
            let (len, peer) = server.recv_from(&mut question).unwrap();
            // Version Negotiation with version 1, whose connection IDs are swapped. RFC 9000 §17.2.1.
            let mut answer = vec![0x80, 0, 0, 0, 0];
            let (destination, source) = (&question[6..14], &question[15..23]);
            for id in [source, destination] {
                answer.push(8);
                answer.extend_from_slice(id);
            }
            answer.extend_from_slice(&1_u32.to_be_bytes());
            server.send_to(&answer, peer).unwrap();
            len
        });
        assert_eq!(choose_address(&[first, second]).unwrap(), second);
        assert_eq!(answering.join().unwrap(), 1_200, "a shorter datagram is not answered, RFC 9000 §6.1");
        let (_other, third) = bind();
        assert_eq!(choose_address(&[first, third]).unwrap(), first, "all are silent");
    }
}
