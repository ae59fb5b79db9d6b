//! From what perf prints to a ledger and a flame graph, with samples of a server as perf prints them; and from an address of
//! this program to the name of its function.

use profile::inlines::Inlines;
use profile::parts::Part;
use profile::script::{Frame, Side, Stack, stacks};
use profile::{Ledger, Profile};

/// Six samples: two of a send, one of which delivers; a receive; sealing, whose innermost function is assembly; a mask; and an
/// unknown function.
const PRINTED: &str = "\
tercel-0 14350 13823.200056: cpu-clock: \n\
\tffffffff8162f4ab __slab_free ([kernel.kallsyms])\n\
\tffffffff81e66bf5 net_rx_action ([kernel.kallsyms])\n\
\tffffffff81e6303c __dev_queue_xmit ([kernel.kallsyms])\n\
\tffffffff820445e6 udp_sendmsg ([kernel.kallsyms])\n\
\tffffffff81e2f4fb __sys_sendmmsg ([kernel.kallsyms])\n\
\tffffffff81000130 entry_SYSCALL_64_after_hwframe ([kernel.kallsyms])\n\
\t          10ac4d __sendmmsg (/nowhere/libc.so.6)\n\
\t          6f5d15 _ZN3udp6sender6Sender5flush17h0123456789abcdefE (/nowhere/tercel)\n\
\t          2aa8db worker::worker::Worker<P,A>::turn (/nowhere/tercel)\n\
\tffffffffffffffff [unknown] ([unknown])\n\
\n\
tercel-0 14350 13823.201056: cpu-clock: \n\
\tffffffff81ffba2c __ip_append_data ([kernel.kallsyms])\n\
\tffffffff81e2f4fb __sys_sendmmsg ([kernel.kallsyms])\n\
\t          10ac4d __sendmmsg (/nowhere/libc.so.6)\n\
\t          2aa8db worker::worker::Worker<P,A>::turn (/nowhere/tercel)\n\
\n\
tercel-0 14350 13823.202056: cpu-clock: \n\
\tffffffff81e2f4fb __sys_recvmmsg ([kernel.kallsyms])\n\
\t          10ac4d recvmmsg (/nowhere/libc.so.6)\n\
\n\
tercel-0 14350 13823.203056: cpu-clock: \n\
\t          6c5d15 aws_lc_0_47_0_aes_gcm_encrypt_avx512 (/nowhere/tercel)\n\
\t          6b5d15 crypto::packet::PacketKey::seal (/nowhere/tercel)\n\
\t          30e875 transport::connection::transmit::<impl transport::connection::Connection>::transmit (/nowhere/tercel)\n\
\t          2aa8db worker::worker::Worker<P,A>::turn (/nowhere/tercel)\n\
\n\
tercel-0 14350 13823.204056: cpu-clock: \n\
\t          6a5d15 aes::autodetect::encrypt (/nowhere/tercel)\n\
\t          6b7d15 crypto::header::HeaderKey::masks (/nowhere/tercel)\n\
\t          30e875 transport::connection::transmit::<impl transport::connection::Connection>::transmit (/nowhere/tercel)\n\
\n\
signals 14351 13823.205056: cpu-clock: \n\
\t          123456 [unknown] (/nowhere/lib<odd>&.so)\n\
\n";

#[test]
fn samples_become_a_ledger() {
    let profile = Profile::of(&stacks(PRINTED), "a <server>").unwrap();
    let Ledger { samples, lines, delivery, unexplained, .. } = &profile.ledger;
    let count = |part: Part| lines.iter().find(|line| line.part == part).map_or(0, |line| line.samples);
    assert_eq!(*samples, 6);
    for (part, expected) in [
        (Part::KernelSend, 2),
        (Part::KernelReceive, 1),
        (Part::PacketProtection, 1),
        (Part::HeaderProtection, 1),
        (Part::Unexplained, 1),
        (Part::Transport, 0),
    ] {
        assert_eq!(count(part), expected, "{}", part.name());
    }
    assert_eq!((lines.iter().map(|line| line.samples).sum::<u64>(), *delivery), (6, 1.0 / 6.0));
    assert_eq!(unexplained, &[("[lib<odd>&.so]".to_owned(), 1.0 / 6.0)]);
    assert_eq!(profile.notes, ["Only 6 samples: shares are rough."]);
}

#[test]
fn samples_become_a_flame_graph() {
    let profile = Profile::of(&stacks(PRINTED), "a <server>").unwrap();
    let line = "tercel-0;worker::worker::Worker::turn;udp::sender::Sender::flush;__sendmmsg;entry_SYSCALL_64_after_hwframe;\
        __sys_sendmmsg;udp_sendmsg;__dev_queue_xmit;net_rx_action;__slab_free 1";
    assert!(profile.folded.lines().any(|folded| folded == line), "{}", profile.folded);
    let svg = &profile.svg;
    for part in [
        "a &lt;server&gt;",
        "crypto::header::HeaderKey::masks",
        "lib&lt;odd&gt;&amp;.so",
        "■</tspan> kernel send 33 %",
    ] {
        assert!(svg.contains(part), "{part} is missing");
    }
    // Nothing is loaded: addresses are names of formats, or stand in remarks.
    assert!(!svg.contains("src=") && !svg.contains("@import") && !svg.contains("url(http"), "{svg}");
    assert!(Profile::of(&[], "nothing").is_err());
}

#[inline(never)]
fn a_function_of_this_test() -> u64 {
    std::hint::black_box(3)
}

/// Deleted, names could be those of other functions: where code lies in a file and where in memory differ by a page.
#[test]
fn an_address_in_a_file_has_the_name_of_its_function() {
    assert_eq!(a_function_of_this_test(), 3);
    let address = a_function_of_this_test as fn() -> u64 as usize as u64;
    let object = std::env::current_exe().unwrap().display().to_string();
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let in_file = maps.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        let (from, to) = words.next()?.split_once('-')?;
        let [from, to] = [from, to].map(|end| u64::from_str_radix(end, 16));
        let offset = u64::from_str_radix(words.nth(1)?, 16).ok()?;
        let from = from.ok()?;
        (from..to.ok()?).contains(&address).then(|| address - from + offset)
    });
    let frame = Frame { address: in_file.unwrap(), symbol: "wrong".to_owned(), object, side: Side::User };
    let functions = Inlines::default().expand(&Stack { thread: String::new(), frames: vec![frame] });
    assert!(
        functions.iter().any(|function| function.name.contains("a_function_of_this_test")),
        "{functions:?}"
    );
}
