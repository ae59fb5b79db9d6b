//! A run as a capture file: `SIM_TRACE=FILE SSLKEYLOGFILE=KEYS SIM_SEED=…`, then `tshark -r FILE -o tls.keylog_file:KEYS`.
//! It shows what was sent, also what never arrived.

use crate::network::{CapturedDatagram, Network};
use base::time::Duration;
use datapath::pcap::{PcapWriter, Record};
use std::cell::RefCell;
use std::ffi::OsString;
use std::fs::File;

/// A capture that was asked for, or none.
#[derive(Debug)]
pub struct Trace(Option<OsString>);

impl Trace {
    /// Starts keeping copies if `SIM_TRACE` names a file.
    pub fn start(network: &RefCell<Network>) -> Trace {
        let path = std::env::var_os("SIM_TRACE");
        if path.is_some() {
            network.borrow_mut().start_tap();
        }
        Trace(path)
    }

    /// Writes the file.
    ///
    /// # Errors
    /// It cannot be written, in words.
    pub fn finish(self, network: &RefCell<Network>) -> Result<(), String> {
        let Some(path) = self.0 else { return Ok(()) };
        let write = || {
            let mut writer = PcapWriter::new(File::create(&path)?)?;
            for sighting in network.borrow_mut().take_sightings() {
                let CapturedDatagram { at, source, destination, ecn, bytes } = &sighting;
                let record = Record { source: *source, destination: *destination, ecn: *ecn, payload: bytes };
                writer.write(Duration::from_nanos(at.as_nanos()), &record)?;
            }
            writer.flush()
        };
        write().map_err(|error| format!("{}: {error}", path.display()))
    }
}
