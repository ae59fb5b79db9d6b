//! One thread: the turn loop, the timer wheel, connections in a slab.
