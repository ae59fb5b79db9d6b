//! Where the server's core goes over each path, and what the study asked about that.

use bench::method::Method;
use profile::parts::Part;
use profile::{Ledger, Profile};
use report::model::Study;

use crate::context::Context;
use crate::downloads::DownloadSeries;
use crate::profiles::{self, Look};

/// The server's paths that are looked into: what the study compared, and what it did not know.
const METHODS: [Method; 3] = [Method::Plain, Method::Gso, Method::XdpDriver];

/// Adds flame graphs, the ledger and what they say.
pub(super) fn add(context: &mut Context<'_>, packet_size: u16, study: &mut Study) {
    let size = packet_size.to_string();
    let quic = ["--cipher", "aes128", "--congestion", "cubic", "--packet-size", &size];
    let look =
        |method: Method| Look::at_download(DownloadSeries::new(method.name(), method, &quic), profiles::veth);
    let found = profiles::add(context, METHODS.map(look).into(), study);
    study.findings.extend(verdict(&found));
}

/// Beside what the study saw.
fn verdict(found: &[(String, Profile)]) -> Option<String> {
    let said: Vec<String> = found
        .iter()
        .map(|(name, Profile { ledger, .. })| {
            let [send, seal] =
                [Part::KernelSend, Part::PacketProtection].map(|part| Ledger::share(ledger, part));
            if seal > 0.0 { format!("{:.1} with {name}", send / seal) } else { format!("all with {name}") }
        })
        .collect();
    (!said.is_empty()).then(|| {
        format!(
            "The kernel's sending over packet protection, in CPU time: {}. The study saw the kernel's send call far ahead of encryption \
             with UDP, and the two about equal with AF_XDP.",
            said.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profiles::tests::pretended;

    /// Deleted, the question of the study, which of the two is larger, could be answered the wrong way round.
    #[test]
    fn the_verdict_is_of_these_profiles() {
        let found = [("plain".to_owned(), pretended(75, 25)), ("xdp driver".to_owned(), pretended(50, 50))];
        let told = verdict(&found).unwrap();
        assert!(told.contains("3.0 with plain, 1.0 with xdp driver"), "{told}");
        assert_eq!(verdict(&[]), None);
    }
}
