//! Trains that the sender's kernel left to its interface to cut, and that no interface cut.
//!
//! Over veth in generic mode, and on virtio_net with segmentation in the guest, a train arrives as one datagram, and nothing beside
//! it tells where its packets begin: the headers are those of one long datagram. The packets tell by themselves. Those of one
//! train go to one connection, so each with a short header begins with the same connection ID (RFC 9000 §17.3.1), and all
//! but the last are equally long.

/// Bytes of the connection ID that are compared: those of an endpoint of ours.
const ID: usize = 8;
/// The shortest packet that is looked for, in bytes: first byte, ID, packet number, and a sample for header protection.
const SHORTEST: usize = 1 + ID + 4 + 16;
/// Bytes that are looked through at once.
const STEP: usize = 64;

/// The length of the packets in `bytes` if they are a train; `None` if they are one packet, or none of QUIC.
pub(crate) fn packet_size(bytes: &[u8]) -> Option<usize> {
    let id = bytes.get(1..=ID).filter(|_| is_short(bytes))?;
    let first = *id.first()?;
    let begins = |place: usize| {
        let packet = bytes.get(place..).unwrap_or_default();
        is_short(packet) && packet.get(1..=ID) == Some(id)
    };
    // The second packet is the first place at which everything fits.
    let mut place = SHORTEST;
    while place + ID < bytes.len() {
        let chunk = bytes.get(place + 1..bytes.len().min(place + 1 + STEP))?;
        if chunk.contains(&first)
            && let Some(size) = (place..place + chunk.len()).find(|place| begins(*place))
        {
            return (size..bytes.len()).step_by(size).all(begins).then_some(size);
        }
        place += STEP;
    }
    None
}

/// Whether a packet has a short header of version 1 or 2: the first bit is zero, the second is one.
fn is_short(packet: &[u8]) -> bool {
    packet.first().is_some_and(|first| first & 0xc0 == 0x40)
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::rng::Rng;

    /// Packets of these lengths for one connection, with noise in them.
    fn train(lengths: &[usize]) -> Vec<u8> {
        let mut rng = Rng::from_u64(7);
        let mut bytes = Vec::new();
        for length in lengths {
            bytes.push(0x40 | rng.below(0x40) as u8);
            bytes.extend_from_slice(b"\x00same id");
            bytes.extend((0..length - 1 - ID).map(|_| rng.below(256) as u8));
        }
        bytes
    }

    #[test]
    fn the_packets_of_a_train_are_found_whatever_their_length() {
        for size in [SHORTEST, 64, 65, 128, 1_200, 1_452, 4_000] {
            for last in [SHORTEST, size] {
                assert_eq!(packet_size(&train(&[size, size, size, last])), Some(size), "{size} {last}");
                assert_eq!(packet_size(&train(&[size, last])), Some(size), "{size} {last}");
            }
        }
    }

    #[test]
    fn what_is_one_packet_or_not_of_quic_stays_whole() {
        for size in [0, 1, 9, 20, 8_972] {
            assert_eq!(packet_size(&vec![0x41; size]), (size > SHORTEST + ID).then_some(SHORTEST));
        }
        assert_eq!(packet_size(&train(&[8_972])), None);
        // Packets of two connections, a long header, and packets that grow: no kernel makes a train of them.
        let mut other = train(&[1_200, 1_200, 1_200]);
        other[2_402] ^= 1;
        assert_eq!(packet_size(&other), None);
        let mut long = train(&[1_200, 1_200]);
        long[0] |= 0x80;
        assert_eq!(packet_size(&long), None);
        assert_eq!(packet_size(&train(&[1_000, 1_200])), None);
    }
}
