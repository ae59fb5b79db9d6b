//! The program that gives a datagram to the worker whose connection it belongs to.
//!
//! A reuseport group is several sockets bound to one address. Left alone, the kernel picks among them by a hash of
//! addresses and ports, so a client that changes its port changes its worker. This program picks by the connection ID
//! instead (the rule is in `programs/steer.c`). Attached once, it serves the group as long as one of its sockets is open,
//! with or without the [`ReuseportProgram`] that loaded it.

use std::os::fd::{AsFd, AsRawFd};

use aya::maps::{Array, MapData, ReusePortSockArray};
use aya::programs::SkReuseport;
use aya::{Ebpf, EbpfLoader};

use crate::error::{Capability, EbpfError, Step};

const OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("CARGO_MANIFEST_DIR"), "/programs/steer.o"));

const NEEDED: &[Capability] = &[Capability::Bpf];

/// The loaded program. Insert every worker's socket, then attach it by any of them.
#[derive(Debug)]
pub struct ReuseportProgram {
    object: Ebpf,
    sockets: Sockets,
}

struct Sockets(ReusePortSockArray<MapData>);

impl core::fmt::Debug for Sockets {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Sockets")
    }
}

impl ReuseportProgram {
    /// Loads the program for a group of `workers` sockets; 0 counts as 1.
    ///
    /// # Errors
    /// Without CAP_BPF, or when the kernel does not know such programs (they came with Linux 4.19).
    pub fn load(workers: u8) -> Result<ReuseportProgram, EbpfError> {
        let step = Step { doing: "load the program that steers by connection ID", needs: NEEDED };
        step.permitted()?;
        let mut object = EbpfLoader::new().btf(None).load(OBJECT).map_err(|error| step.failed(&error))?;
        let mut map = |name| object.take_map(name).ok_or_else(|| step.incomplete());
        let (sockets, worker_of) = (map("sockets")?, map("worker_of")?);
        let sockets = ReusePortSockArray::try_from(sockets).map_err(|error| step.failed(&error))?;
        let mut worker_of: Array<MapData, u32> =
            Array::try_from(worker_of).map_err(|error| step.failed(&error))?;
        for byte in 0..256 {
            let worker = byte % u32::from(workers.max(1));
            worker_of.set(byte, worker, 0).map_err(|error| step.failed(&error))?;
        }
        let mut program = ReuseportProgram { object, sockets: Sockets(sockets) };
        program.program(step)?.load().map_err(|error| step.failed(&error))?;
        Ok(program)
    }

    /// Makes `socket` that of worker `index`. It must be bound already, with SO_REUSEPORT, and leaves when it is closed.
    ///
    /// # Errors
    /// When the socket is not of a reuseport group, or `index` is 255.
    pub fn insert(&mut self, index: u8, socket: impl AsFd) -> Result<(), EbpfError> {
        let step = Step { doing: "give a worker's socket to the program that steers", needs: NEEDED };
        let socket = socket.as_fd().as_raw_fd();
        self.sockets.0.set(u32::from(index), &socket, 0).map_err(|error| step.failed(&error))
    }

    /// Puts the program in charge of the group that `socket` belongs to.
    ///
    /// # Errors
    /// When the socket is not bound with SO_REUSEPORT.
    pub fn attach(&mut self, socket: impl AsFd) -> Result<(), EbpfError> {
        let step = Step { doing: "attach the program that steers by connection ID", needs: NEEDED };
        self.program(step)?.attach(socket).map_err(|error| step.failed(&error))
    }

    fn program(&mut self, step: Step) -> Result<&mut SkReuseport, EbpfError> {
        let program = self.object.program_mut("steer").ok_or_else(|| step.incomplete())?;
        program.try_into().map_err(|error| step.failed(&error))
    }
}
