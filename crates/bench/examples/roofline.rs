//! Prints the roofline: `cargo run --release -p tercel-bench --example roofline -- [kernel] [mmsg|plain] [json] [SIZE…]`.

use std::env;
use std::io;
use std::process::Command;

use bench::roofline::{self, Plan, Work};
use udp::Variant;

fn main() -> io::Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    if let [word, role] = arguments.as_slice()
        && word == "child"
    {
        return roofline::child(role);
    }
    let has = |word: &str| arguments.iter().any(|argument| argument == word);
    let work = if has("kernel") { Work::Kernel } else { Work::Whole };
    let variant = Variant::ALL.into_iter().find(|variant| has(variant.name())).unwrap_or_default();
    let number = |name: &str| {
        let prefix = format!("{name}=");
        arguments.iter().find_map(|argument| argument.strip_prefix(&prefix)?.parse::<f64>().ok())
    };
    let mut sizes: Vec<usize> = arguments.iter().filter_map(|argument| argument.parse().ok()).collect();
    if sizes.is_empty() {
        sizes = vec![1_472, 32_000];
    }
    for size in sizes {
        let mut plan = Plan::new(size, number("gb").unwrap_or(4.0), work, variant);
        plan.trials = number("trials").map_or(plan.trials, |n| n as usize);
        plan.window = number("window").map_or(plan.window, |n| n as usize);
        plan.send_memory = number("send-memory").map_or(plan.send_memory, |n| n as usize);
        plan.receive_batch = number("receive-batch").map_or(plan.receive_batch, |n| n as usize);
        let result = roofline::run(&plan, &|role| {
            let mut command = Command::new(env::current_exe()?);
            command.args(["child", role]);
            Ok(command)
        })?;
        if has("json") {
            println!("{}", serde_json::to_string(&result)?);
            continue;
        }
        println!("{size} bytes, {}: {:.2} Gbit/s", plan.variant, result.gbit_per_second);
        for (name, side) in [("sender", result.sender), ("receiver", result.receiver)] {
            println!(
                "  {name:8} {:.3} CPU s/GB, {:6.0} ns a datagram, {:5.1} datagrams a call, {:.0} % busy",
                side.cpu_seconds_per_gb,
                side.nanoseconds_per_datagram,
                side.datagrams_per_call,
                side.busy * 100.0
            );
        }
    }
    Ok(())
}
