//! What CPU time is for: the table of names by which a stack is given to one part of the work.
//!
//! Inside the kernel the outermost name decides, since it is the system call: what the kernel does on the way, such as
//! delivering a datagram to a socket of the same machine, is the price of that call. Outside, the innermost name that the
//! table knows decides, since helpers are everybody's: memory copies, slabs and the standard library are no part of their own,
//! and count for their callers. Functions in assembly are often reached without a trace of their callers; they have
//! names that are only looked at when nothing else is known. A page fault counts for the code that met it.

use crate::inlines::Function;
use crate::script::Side;
use serde::{Deserialize, Serialize};

/// A part of the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// System calls that send, with all that the kernel does meanwhile.
    KernelSend,
    /// System calls that receive, and interrupts of the network.
    KernelReceive,
    /// Everything else in the kernel: waiting, timers, memory.
    KernelRest,
    /// Our side of the kernel's interface: messages for system calls, rings, headers of AF_XDP.
    DataPath,
    /// Encrypting and decrypting of packets, or of TLS records over TCP.
    PacketProtection,
    /// Masks of headers.
    HeaderProtection,
    /// TLS: messages, key exchange, signatures, certificates, tickets, keys derived.
    Handshake,
    /// QUIC: connections, streams, loss, pacing, acknowledgements; the loop that drives them. TCP: the way of TLS records.
    Transport,
    /// HTTP and field compression.
    Http,
    /// What the protocol is used for: files, bodies, load.
    Application,
    /// What no name of the table claims.
    Unexplained,
}

impl Part {
    /// All, in the order of the ledger.
    pub const ALL: [Part; 11] = [
        Part::KernelSend,
        Part::KernelReceive,
        Part::KernelRest,
        Part::DataPath,
        Part::PacketProtection,
        Part::HeaderProtection,
        Part::Handshake,
        Part::Transport,
        Part::Http,
        Part::Application,
        Part::Unexplained,
    ];

    /// As the ledger calls it.
    pub const fn name(self) -> &'static str {
        match self {
            Part::KernelSend => "kernel send",
            Part::KernelReceive => "kernel receive",
            Part::KernelRest => "other kernel",
            Part::DataPath => "data path",
            Part::PacketProtection => "packet protection",
            Part::HeaderProtection => "header protection",
            Part::Handshake => "TLS handshake",
            Part::Transport => "transport",
            Part::Http => "HTTP",
            Part::Application => "application",
            Part::Unexplained => "unexplained",
        }
    }
}

/// Functions of the kernel, and whose they are. The outermost one that is listed decides.
const KERNEL: &[(&str, Part)] = &[
    ("__sys_sendmsg", Part::KernelSend),
    ("__sys_sendmmsg", Part::KernelSend),
    ("__sys_sendto", Part::KernelSend),
    ("sock_write_iter", Part::KernelSend),
    ("sock_sendmsg", Part::KernelSend),
    ("udp_sendmsg", Part::KernelSend),
    ("udpv6_sendmsg", Part::KernelSend),
    ("tcp_sendmsg", Part::KernelSend),
    ("xsk_sendmsg", Part::KernelSend),
    ("net_tx_action", Part::KernelSend),
    ("__sys_recvmsg", Part::KernelReceive),
    ("__sys_recvmmsg", Part::KernelReceive),
    ("__sys_recvfrom", Part::KernelReceive),
    ("sock_read_iter", Part::KernelReceive),
    ("sock_recvmsg", Part::KernelReceive),
    ("udp_recvmsg", Part::KernelReceive),
    ("udpv6_recvmsg", Part::KernelReceive),
    ("tcp_recvmsg", Part::KernelReceive),
    ("xsk_recvmsg", Part::KernelReceive),
    ("net_rx_action", Part::KernelReceive),
    ("napi_busy_loop", Part::KernelReceive),
];

/// The kernel's way into a page fault, which is the program's doing.
const PAGE_FAULTS: &[&str] = &["asm_exc_page_fault", "exc_page_fault"];

/// Where the kernel hands datagrams to a socket or a ring of this machine.
const DELIVERIES: &[&str] =
    &["net_rx_action", "veth_poll", "__netif_receive_skb_core", "__netif_receive_skb"];

/// Modules of programs, and whose they are: the first that a function is in. The innermost function that is in one of them decides.
const MODULES: &[(&str, Part)] = &[
    ("crypto::header", Part::HeaderProtection),
    ("crypto::packet", Part::PacketProtection),
    ("aead::kernel", Part::PacketProtection),
    ("rustls::crypto::aws_lc_rs::tls13::AwsLcHkdf", Part::Handshake),
    ("rustls::crypto::aws_lc_rs::tls13::AwsLcHkdfExpander", Part::Handshake),
    ("rustls::crypto::aws_lc_rs::tls12", Part::PacketProtection),
    ("rustls::crypto::aws_lc_rs::tls13", Part::PacketProtection),
    ("rustls::record_layer", Part::PacketProtection),
    // What each record of content passes as well.
    ("rustls::common_state", Part::Transport),
    ("rustls::conn", Part::Transport),
    ("rustls::msgs::deframer", Part::Transport),
    ("rustls::msgs::fragmenter", Part::Transport),
    ("rustls::msgs::message", Part::Transport),
    ("rustls::stream", Part::Transport),
    ("rustls::vecbuf", Part::Transport),
    ("rustls", Part::Handshake),
    ("webpki", Part::Handshake),
    ("crypto", Part::Handshake),
    ("transport", Part::Transport),
    ("recovery", Part::Transport),
    ("wire", Part::Transport),
    ("worker", Part::Transport),
    ("tokio", Part::Transport),
    ("tokio_rustls", Part::Transport),
    ("http3", Part::Http),
    ("qpack", Part::Http),
    ("hyper", Part::Http),
    ("hyper_util", Part::Http),
    ("h2", Part::Http),
    ("http", Part::Http),
    ("httparse", Part::Http),
    ("udp", Part::DataPath),
    ("xdp", Part::DataPath),
    ("ports", Part::DataPath),
    ("datapath", Part::DataPath),
    ("link", Part::DataPath),
    ("mio", Part::DataPath),
    ("server", Part::Application),
    ("client", Part::Application),
    ("load", Part::Application),
    ("dash", Part::Application),
    ("sim", Part::Application),
    ("bench", Part::Application),
    ("tercel", Part::Application),
    ("quic", Part::Transport),
];

/// Parts of names of cryptography, in assembly mostly, for stacks in which nothing else is known.
const CRYPTOGRAPHY: &[(&str, Part)] = &[
    ("gcm", Part::PacketProtection),
    ("ghash", Part::PacketProtection),
    ("chacha20_poly1305", Part::PacketProtection),
    ("aes_hw_", Part::PacketProtection),
    ("aesni_", Part::PacketProtection),
    ("aes_encrypt", Part::PacketProtection),
    ("25519", Part::Handshake),
    ("mlkem", Part::Handshake),
    ("keccak", Part::Handshake),
    ("nistz256", Part::Handshake),
    ("p256", Part::Handshake),
    ("bignum_", Part::Handshake),
    ("bn_mul", Part::Handshake),
    ("bn_sqr", Part::Handshake),
    ("rsaz_", Part::Handshake),
    ("sha256", Part::Handshake),
    ("sha512", Part::Handshake),
];

/// To which part a stack belongs.
pub fn part(functions: &[Function]) -> Part {
    let kernel: Vec<&str> = names(functions, Side::Kernel);
    let is_fault = kernel.iter().any(|name| PAGE_FAULTS.contains(name));
    let call = kernel.iter().rev().find_map(|name| lookup(KERNEL, name));
    match call {
        Some(part) => return part,
        None if kernel.is_empty() || is_fault => {}
        None => return Part::KernelRest,
    }
    let program = names(functions, Side::User);
    if let Some(part) = program.iter().find_map(|name| of_module(name)) {
        return part;
    }
    let by_name = program.iter().find_map(|name| CRYPTOGRAPHY.iter().find(|(word, _)| name.contains(word)));
    by_name.map_or(Part::Unexplained, |(_, part)| *part)
}

/// Whose a function of a program is, by its module.
pub(crate) fn of_module(name: &str) -> Option<Part> {
    MODULES.iter().find(|(module, _)| is_in(name, module)).map(|(_, part)| *part)
}

/// Whether a stack that sends is on its way into the receiver: on a virtual link the sender pays for that.
pub fn is_delivery(functions: &[Function]) -> bool {
    names(functions, Side::Kernel).iter().any(|name| DELIVERIES.contains(name))
}

fn names(functions: &[Function], side: Side) -> Vec<&str> {
    functions.iter().filter(|function| function.side == side).map(|function| function.name.as_str()).collect()
}

fn lookup(table: &[(&str, Part)], name: &str) -> Option<Part> {
    // The compiler splits functions: `udp_sendmsg.part.0`.
    let whole = name.split('.').next().unwrap_or(name);
    table.iter().find(|(known, _)| *known == whole).map(|(_, part)| *part)
}

fn is_in(name: &str, module: &str) -> bool {
    name.strip_prefix(module).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Innermost first; names of the kernel have a `k:` before them.
    fn of(names: &[&str]) -> Vec<Function> {
        let function = |name: &&str| match name.strip_prefix("k:") {
            Some(name) => Function { name: name.to_owned(), side: Side::Kernel },
            None => Function { name: (*name).to_owned(), side: Side::User },
        };
        names.iter().map(function).collect()
    }

    #[test]
    fn a_system_call_decides_in_the_kernel() {
        let send = of(&[
            "k:__slab_free",
            "k:net_rx_action",
            "k:udp_sendmsg.part.0",
            "k:__sys_sendmsg",
            "__libc_sendmsg",
            "udp::sender::flush",
            "worker::worker::turn",
        ]);
        assert_eq!((part(&send), is_delivery(&send)), (Part::KernelSend, true));
        assert_eq!(
            part(&of(&["k:copyout", "k:__sys_recvmmsg", "recvmmsg", "udp::sys::receive"])),
            Part::KernelReceive
        );
        assert_eq!(part(&of(&["k:ip_rcv", "k:net_rx_action", "crypto::packet::seal"])), Part::KernelReceive);
        assert_eq!(
            part(&of(&["k:schedule", "k:do_epoll_wait", "epoll_wait", "worker::wait"])),
            Part::KernelRest
        );
        let fault =
            of(&["k:clear_page", "k:asm_exc_page_fault", "memcpy", "http3::body::write", "server::run"]);
        assert_eq!(part(&fault), Part::Http, "the code that meets a page fault pays for it");
    }

    #[test]
    fn the_innermost_known_module_decides_outside() {
        for (stack, expected) in [
            (
                &["core_arch::x86::aes", "aes::ni::encrypt", "crypto::header::masks", "transport::x"][..],
                Part::HeaderProtection,
            ),
            (
                &["aws_lc_0_34_aes_gcm_enc_update_vaes", "aws_lc_rs::aead::seal", "crypto::packet::seal"],
                Part::PacketProtection,
            ),
            (
                &["memcpy", "base::slab::get", "transport::connection::transmit", "worker::turn"],
                Part::Transport,
            ),
            (&["core::option::map", "http3::frame::encode", "worker::turn"], Part::Http),
            (&["xdp::tx::fill", "worker::turn"], Part::DataPath),
            (&["serverless::x", "wired::y"], Part::Unexplained),
            (&["aesni_gcm_encrypt"], Part::PacketProtection),
            (&["crypto::session::read", "transport::handshake"], Part::Handshake),
            (
                &[
                    "x25519_scalar_mult",
                    "aws_lc_rs::agreement::agree",
                    "rustls::crypto::aws_lc_rs::kx::complete",
                ],
                Part::Handshake,
            ),
            (
                &[
                    "rustls::crypto::aws_lc_rs::tls13::AwsLcHkdfExpander::expand_slice",
                    "rustls::tls13::key_schedule::x",
                ],
                Part::Handshake,
            ),
            (
                &[
                    "aes_gcm",
                    "rustls::crypto::aws_lc_rs::tls13::GcmMessageEncrypter::encrypt",
                    "rustls::record_layer::x",
                ],
                Part::PacketProtection,
            ),
            (&["memcpy", "rustls::conn::ConnectionCommon::write_tls", "tokio_rustls::x"], Part::Transport),
            (&["memcpy", "rustls::server::tls13::emit_certificate", "rustls::conn::x"], Part::Handshake),
            (&["transport::connection::handshake::x", "worker::turn"], Part::Transport),
            (&["aws_lc_0_47_0_sha256_block_data_order_hw"], Part::Handshake),
            (&[], Part::Unexplained),
        ] {
            assert_eq!(part(&of(stack)), expected, "{stack:?}");
        }
    }
}
