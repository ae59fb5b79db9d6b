//! What the kernel's AF_XDP interface needs that no safe wrapper covers. All of the crate's `unsafe` is in this folder.
//!
//! [`umem::Umem`] is packet memory, cut into frames; a [`umem::Frame`] stands for one of them and cannot be copied.
//! [`ring::Producer`] and [`ring::Consumer`] are the four rings; frames go into them and come out of them by value. So
//! only the holder of a frame may touch its bytes, the kernel included, and the code above needs no
//! `unsafe` to keep it so. [`pieces::Pieces`] hands long packets over. [`socket::Socket`] makes all of it.

#[cfg(miri)]
mod kernel;
pub(crate) mod mapping;
pub(crate) mod pieces;
pub(crate) mod ring;
pub(crate) mod socket;
pub(crate) mod umem;
