//! A slab whose handles carry a generation, so that a stale handle finds nothing instead of another value.

/// A slot in a [`Slab`] and the generation that it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Handle {
    index: u32,
    generation: u32,
}

impl Handle {
    /// The slot's number: below the largest number of entries that the slab ever held. For side tables.
    pub fn index(self) -> usize {
        self.index as usize
    }
}

#[derive(Debug)]
struct Slot<T> {
    generation: u32,
    value: Option<T>,
}

/// Values in stable slots, found in constant time.
#[derive(Debug)]
pub struct Slab<T> {
    slots: Vec<Slot<T>>,
    free: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Slab { slots: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slab<T> {
    /// An empty slab.
    pub fn new() -> Slab<T> {
        Slab::default()
    }

    /// The handle that the next `insert` will return.
    pub fn next_handle(&self) -> Handle {
        match self.free.last() {
            Some(&index) => {
                Handle { index, generation: self.slots.get(index as usize).map_or(0, |slot| slot.generation) }
            }
            None => Handle { index: self.slots.len() as u32, generation: 0 },
        }
    }

    /// Puts `value` in a free slot.
    pub fn insert(&mut self, value: T) -> Handle {
        let handle = self.next_handle();
        match self.free.pop().and_then(|index| self.slots.get_mut(index as usize)) {
            Some(slot) => slot.value = Some(value),
            None => self.slots.push(Slot { generation: 0, value: Some(value) }),
        }
        handle
    }

    /// The value of `handle`, unless it was removed.
    pub fn entry(&self, handle: Handle) -> Option<&T> {
        self.slots
            .get(handle.index())
            .filter(|slot| slot.generation == handle.generation)
            .and_then(|slot| slot.value.as_ref())
    }

    /// The value of `handle`, unless it was removed.
    pub fn entry_mut(&mut self, handle: Handle) -> Option<&mut T> {
        self.slots
            .get_mut(handle.index())
            .filter(|slot| slot.generation == handle.generation)
            .and_then(|slot| slot.value.as_mut())
    }

    /// Takes the value out and retires the handle.
    pub fn remove(&mut self, handle: Handle) -> Option<T> {
        let slot = self.slots.get_mut(handle.index()).filter(|slot| slot.generation == handle.generation)?;
        let value = slot.value.take()?;
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(handle.index);
        Some(value)
    }

    /// How many values it holds.
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All values with their handles, in order of their slots.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (Handle, &mut T)> {
        self.slots.iter_mut().enumerate().filter_map(|(index, slot)| {
            let handle = Handle { index: index as u32, generation: slot.generation };
            slot.value.as_mut().map(|value| (handle, value))
        })
    }

    /// All handles, in order of their slots.
    pub fn handles(&self) -> impl Iterator<Item = Handle> + '_ {
        self.slots
            .iter()
            .enumerate()
            .filter(|(_, slot)| slot.value.is_some())
            .map(|(index, slot)| Handle { index: index as u32, generation: slot.generation })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stale_handle_finds_nothing() {
        let mut slab = Slab::new();
        let first = slab.insert("first");
        assert_eq!(slab.remove(first), Some("first"));
        assert_eq!(slab.next_handle(), slab.insert("second"));
        assert_eq!(slab.entry(first), None);
        assert_eq!(slab.remove(first), None);
        assert_eq!(slab.len(), 1);
    }
}
