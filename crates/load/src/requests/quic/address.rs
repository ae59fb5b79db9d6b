//! Which of a server's addresses is asked: all connections of a run go to the same one, so that they measure one thing.

use crate::dial::{Fault, speaks_of_the_way};
use crate::error::GetError;
use crate::probe::Probe;
use std::net::SocketAddr;
use std::time::Duration;

/// How long the network has to say that nobody is there.
const PATIENCE: Duration = Duration::from_millis(60);
const STEP: Duration = Duration::from_millis(5);

/// The first of the addresses at which the network does not say that nobody is there. A single one is taken as it is: the
/// run itself will tell.
///
/// # Errors
/// Nobody is at any of them.
pub fn choose_address(addresses: &[SocketAddr]) -> Result<SocketAddr, GetError> {
    if let [only] = addresses {
        return Ok(*only);
    }
    let mut fault = GetError::Usage("there is no address to ask".into());
    for address in addresses {
        match verdict(*address) {
            None => return Ok(*address),
            Some(error) => fault = Fault::of_network(*address, error.kind()),
        }
    }
    Err(fault)
}

/// What the network says against an address; `None` when it says nothing.
fn verdict(address: SocketAddr) -> Option<std::io::Error> {
    let probe = match Probe::send(address) {
        Ok(probe) => probe,
        Err(error) => return Some(error),
    };
    let mut waited = Duration::ZERO;
    while waited < PATIENCE {
        std::thread::sleep(STEP);
        waited += STEP;
        if let Some(error) = probe.verdict().filter(|error| speaks_of_the_way(error.kind())) {
            return Some(error);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;

    #[test]
    fn an_address_where_nobody_listens_is_passed_over() {
        let sockets = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
        let [first, second] = [0, 1].map(|index: usize| sockets[index].local_addr().unwrap());
        let [closed, _open] = sockets;
        drop(closed);
        assert_eq!(choose_address(&[first, second]).unwrap(), second);
        assert_eq!(choose_address(&[first]).unwrap(), first, "a single one is not asked about");
        assert_eq!(choose_address(&[first, first]).unwrap_err().exit_code(), 7);
        assert!(choose_address(&[]).is_err());
    }
}
