//! The numbers by which the responses of sites are counted.
//!
//! A site keeps its number over reloads, by its first name, so that its count only rises. There are [`MOST`] numbers; sites that come
//! later share one more. So a file with thousands of sites, or thousands of reloads, makes no more series of metrics.

use super::site::Sites;

/// Sites that are counted apart.
const MOST: usize = 64;
/// What the others are called together. It is no name of a host.
const OTHERS: &str = "(other)";

/// The sites that have a number, in its order: the first has 1. Responses of no site have 0.
#[derive(Debug, Default)]
pub(super) struct Slots(Vec<String>);

impl Slots {
    /// Gives each of the sites its number.
    pub(super) fn number(&mut self, mut sites: Sites) -> Sites {
        sites.slots = sites.called.iter().map(|name| self.of(name)).collect();
        sites
    }

    fn of(&mut self, name: &str) -> usize {
        if let Some(place) = self.0.iter().position(|known| known == name) {
            return place + 1;
        }
        if self.0.len() < MOST {
            self.0.push(name.to_owned());
            return self.0.len();
        }
        MOST + 1
    }

    /// What they are called, by their numbers.
    pub(super) fn names(&self) -> Vec<String> {
        let mut names = vec![String::new()];
        names.extend(self.0.iter().cloned());
        if self.0.len() == MOST {
            names.push(OTHERS.to_owned());
        }
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Deleted, metrics could have a series for each of thousands of sites, or a site take over the count of another.
    #[test]
    fn a_site_keeps_its_number_and_there_are_few() {
        let mut slots = Slots::default();
        let numbers = |slots: &mut Slots, names: &[&str]| -> Vec<usize> {
            names.iter().map(|name| slots.of(name)).collect()
        };
        assert_eq!(numbers(&mut slots, &["a.org", "*"]), [1, 2]);
        assert_eq!(numbers(&mut slots, &["b.org", "a.org"]), [3, 1], "after a reload");
        assert_eq!(slots.names(), ["", "a.org", "*", "b.org"]);
        for number in 0..1_000 {
            slots.of(&format!("{number}.org"));
        }
        assert_eq!(numbers(&mut slots, &["a.org", "62.org", "999.org"]), [1, MOST + 1, MOST + 1]);
        assert_eq!((slots.names().len(), slots.names().pop().as_deref()), (MOST + 2, Some(OTHERS)));
    }
}
