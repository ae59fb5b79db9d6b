//! Which of a server's addresses is asked over TCP: all connections of a run go to the same one.

use client::error::GetError;
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// How long an address may take to answer, where there is another one.
const PATIENCE: Duration = Duration::from_secs(2);

/// The first of the addresses that takes a connection. A single one is taken as it is: the run itself will tell.
///
/// # Errors
/// None of them takes one.
pub fn choose_tcp_address(addresses: &[SocketAddr]) -> Result<SocketAddr, GetError> {
    if let [only] = addresses {
        return Ok(*only);
    }
    let mut fault = GetError::Usage("there is no address to ask".into());
    for address in addresses {
        match TcpStream::connect_timeout(address, PATIENCE) {
            Ok(_) => return Ok(*address),
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                fault = GetError::Usage(format!("nothing listens on TCP {address}: check the port"));
            }
            Err(error) => fault = GetError::Unreachable(*address, error),
        }
    }
    Err(fault)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn an_address_where_nobody_listens_is_passed_over() {
        let listeners = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
        let [first, second] = [0, 1].map(|index: usize| listeners[index].local_addr().unwrap());
        let [closed, _open] = listeners;
        drop(closed);
        assert_eq!(choose_tcp_address(&[first, second]).unwrap(), second);
        assert_eq!(choose_tcp_address(&[first]).unwrap(), first, "a single one is not asked about");
        assert!(choose_tcp_address(&[first, first]).is_err() && choose_tcp_address(&[]).is_err());
    }
}
