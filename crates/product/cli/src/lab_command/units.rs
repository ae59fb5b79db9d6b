//! Numbers with units on the command line of the laboratory: times, rates, shares. A number without its unit is refused, because
//! a delay of `1` is a mistake as often as it is a second.

pub(crate) use crate::units::bytes;
use crate::units::{number, whole};
use netns::emulator::Reorder;
use std::time::Duration;

/// When something happens: some time, or some traffic, after the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    /// This long after it.
    Time(Duration),
    /// Once this many bytes have passed.
    Bytes(u64),
}

const TIMES: &[(&str, f64)] = &[("ns", 1e-9), ("us", 1e-6), ("ms", 1e-3), ("s", 1.0), ("min", 60.0)];
const RATES: &[(&str, f64)] = &[("bit", 1.0), ("kbit", 1e3), ("mbit", 1e6), ("gbit", 1e9)];
/// A time such as `1ms`, `250us`, `1.5s`; at most a day.
pub(crate) fn time(text: &str) -> Result<Duration, String> {
    let seconds = number(text, TIMES, "a time such as 1ms, 250us or 2s")?;
    if seconds > 86_400.0 {
        return Err("at most a day".to_owned());
    }
    Ok(Duration::from_secs_f64(seconds))
}

/// A rate such as `5gbit` or `100mbit`, in bits per second; at least 1.
pub(crate) fn rate(text: &str) -> Result<u64, String> {
    whole(number(text, RATES, "a rate such as 5gbit, 100mbit or 64kbit")?)
}

/// A percentage such as `1%`, as a share of 1.
pub(crate) fn share(text: &str) -> Result<f64, String> {
    let percent = number(text, &[("%", 1.0)], "a percentage such as 1% or 0.1%")?;
    if percent > 100.0 {
        return Err("at most 100%".to_owned());
    }
    Ok(percent / 100.0)
}

/// A share and a time such as `10%/5ms`.
pub(crate) fn late(text: &str) -> Result<Reorder, String> {
    let (how_many, by) = text.split_once('/').ok_or("give a share and a time such as 10%/5ms")?;
    let reorder = Reorder { share: share(how_many)?, by: time(by)? };
    if reorder.by.is_zero() {
        return Err("the time may not be zero".to_owned());
    }
    Ok(reorder)
}

/// Ordinals of datagrams, counted from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ordinals(pub(crate) Vec<u64>);

/// A list such as `2-7` or `1,3,5-9`; at most a thousand.
pub(crate) fn ordinals(text: &str) -> Result<Ordinals, String> {
    let one = |part: &str| part.trim().parse::<u64>().ok().filter(|ordinal| *ordinal > 0);
    let mut list = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let range = one(first).zip(one(last)).filter(|(first, last)| first <= last);
        let (first, last) = range.ok_or("give datagrams counted from 1, such as 2-7 or 1,3,5-9")?;
        if last - first >= 1_000 || list.len() >= 1_000 {
            return Err("at most a thousand datagrams".to_owned());
        }
        list.extend(first..=last);
    }
    Ok(Ordinals(list))
}

/// Two times such as `5s/2s`, neither of them zero.
pub(crate) fn on_off(text: &str) -> Result<(Duration, Duration), String> {
    let (on, off) = text.split_once('/').ok_or("give two times such as 5s/2s")?;
    let (on, off) = (time(on)?, time(off)?);
    if on.is_zero() || off.is_zero() {
        return Err("neither time may be zero".to_owned());
    }
    Ok((on, off))
}

/// A time or a size.
pub(crate) fn after(text: &str) -> Result<After, String> {
    let after = time(text).map(After::Time).or_else(|_| bytes(text).map(After::Bytes));
    after.map_err(|_| "give a time such as 2s or a size such as 64KB".to_owned())
}

#[cfg(test)]
mod tests {
    use super::{After, Ordinals, Reorder, after, bytes, late, on_off, ordinals, rate, share, time};
    use std::time::Duration;

    #[test]
    fn numbers_with_units_are_read() {
        assert_eq!(time("1ms"), Ok(Duration::from_millis(1)));
        assert_eq!(time("0.5 ms"), Ok(Duration::from_micros(500)));
        assert_eq!(time("2S"), Ok(Duration::from_secs(2)));
        assert_eq!(rate("5gbit"), Ok(5_000_000_000));
        assert_eq!(rate("1.5Mbit"), Ok(1_500_000));
        assert_eq!(bytes("64KB"), Ok(64_000));
        assert_eq!(bytes("1MiB"), Ok(1 << 20));
        assert_eq!(share("1%"), Ok(0.01));
        assert_eq!(after("2s"), Ok(After::Time(Duration::from_secs(2))));
        assert_eq!(after("64kB"), Ok(After::Bytes(64_000)));
        assert_eq!(ordinals("1,3-5"), Ok(Ordinals(vec![1, 3, 4, 5])));
        assert_eq!(late("30%/10ms"), Ok(Reorder { share: 0.3, by: Duration::from_millis(10) }));
        assert_eq!(on_off("5s/2s"), Ok((Duration::from_secs(5), Duration::from_secs(2))));
    }

    #[test]
    fn what_is_no_number_with_a_unit_is_refused_with_an_example() {
        for text in ["1", "", "ms", "-1ms", "1 2ms", "1.2.3ms", "1mbit", "1e3s", "infs", "NaNs"] {
            assert!(time(text).is_err_and(|error| error.contains("1ms")), "{text}");
        }
        assert!(time("100000s").is_err());
        assert!(rate("0gbit").is_err() && rate("9999999999gbit").is_err() && rate("5").is_err());
        assert!(share("101%").is_err() && share("0.01").is_err());
        for text in ["", "0", "5-2", "1-", "1-9999999"] {
            assert!(ordinals(text).is_err(), "{text}");
        }
        assert!(late("30%").is_err() && late("10ms/30%").is_err() && late("1%/0ms").is_err());
        assert!(on_off("5s").is_err() && on_off("0s/1s").is_err());
        assert!(bytes("1ms").is_err() && after("1").is_err());
    }
}
