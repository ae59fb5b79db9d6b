//! Where there is no kernel: no key can be made.

use crate::{Instructions, OpenError};

/// A key that does not exist.
pub(crate) enum Kernel {}

impl Kernel {
    pub(crate) fn new(_: Instructions, _: &[u8]) -> Option<Kernel> {
        None
    }

    pub(crate) fn instructions(&self) -> Instructions {
        match *self {}
    }

    pub(crate) fn seal(&self, _: Nonce, _: &mut [u8], _: usize) {
        match *self {}
    }

    pub(crate) fn seal_with(&self, _: Nonce, _: &mut [u8], _: usize, _: &[u8]) {
        match *self {}
    }

    pub(crate) fn open(&self, _: Nonce, _: &mut [u8], _: usize) -> Result<usize, OpenError> {
        match *self {}
    }
}

/// A key that does not exist.
pub(crate) enum Aes {}

impl Aes {
    pub(crate) fn new(_: &[u8]) -> Option<Aes> {
        None
    }

    pub(crate) fn encrypt<const N: usize>(&self, _: &mut [[u8; 16]; N]) {
        match *self {}
    }
}

/// A nonce, as two numbers in network order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Nonce {
    pub(crate) head: u32,
    pub(crate) tail: u64,
}
