//! `ported`: programs of tercel's examples, compiled with quinn. Their source files are the ones that tercel compiles with
//! `tercel::quic`; what differs between the two is in `setup`.

#[path = "../../../crates/product/tercel/examples/ported/file_transfer.rs"]
mod file_transfer;
#[path = "../../../crates/product/tercel/examples/ported/rpc.rs"]
mod rpc;
mod setup;

use crate::Error;
use clap::Args;
use std::path::PathBuf;

#[derive(Args)]
pub(crate) struct Options {
    /// A folder with a file `file`, and no file `missing`
    root: PathBuf,
}

pub(crate) async fn run(options: Options) -> Result<(), Error> {
    let names = ["file", "missing"].map(str::to_owned);
    let contents = file_transfer::transfer(&options.root, &names).await?;
    let [Some(file), None] = contents.as_slice() else { return Err("the wrong files arrived".into()) };
    let sum = rpc::run(100).await?;
    println!("{} bytes, a file that is missing, and the sum {sum}", file.len());
    Ok(())
}
