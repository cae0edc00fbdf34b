//! Tables of nftables, through the `nft` program.

use rtnetlink::sys::Socket;

use crate::netlink::{NLM_F_ACK, NLM_F_REQUEST, exchange, find, header};
use crate::netns::on_thread;
use crate::program::Program;
use crate::{Error, Result};

const NETLINK_NETFILTER: isize = 12;
const GETGEN: u16 = 10 << 8 | 16;
const NFTA_GEN_ID: u16 = 1;
const NFT: Program = Program {
    name: "nft",
    package: "nftables",
    remedy: "see whether `nft list tables` ends, and what keeps the machine busy",
};

/// The table's rules without their counters; `None` when there is no such table.
pub async fn list(table: &str) -> Result<Option<String>> {
    let mut args = vec!["-s", "list", "table"];
    args.extend(table.split(' '));
    let listed = NFT.run(&format!("list nftables table {table}"), &args, "", &[0, 1]).await?;
    Ok(Some(listed).filter(|text| !text.is_empty()))
}

/// Commands that make `table` hold `body` and nothing else. With what follows them they happen at once.
pub fn replacement(table: &str, body: &str) -> String {
    format!("table {table}\ndelete table {table}\ntable {table} {{\n{body}}}\n")
}

/// Runs `commands`, which name `table`: all of them or none.
pub async fn change(table: &str, commands: &str) -> Result<()> {
    NFT.run(&format!("change nftables table {table}"), &["-f", "-"], commands, &[0]).await.map(drop)
}

/// Whether the kernel takes `commands`; none of them is done. `Err`: what it says about them.
pub async fn check(table: &str, commands: &str) -> Result<std::result::Result<(), String>> {
    let args = ["-c", "-f", "-"];
    match NFT.run(&format!("check a change of nftables table {table}"), &args, commands, &[0]).await {
        Ok(_) => Ok(Ok(())),
        Err(Error::Program { said, .. }) => Ok(Err(said)),
        Err(e) => Err(e),
    }
}

/// Grows by one with each change that anybody makes.
pub async fn generation() -> Result<u32> {
    on_thread(|| {
        let mut socket = Socket::new(NETLINK_NETFILTER).map_err(Error::Socket)?;
        socket.bind_auto().map_err(Error::Socket)?;
        let body = [0; 4];
        let request = [header(GETGEN, NLM_F_REQUEST | NLM_F_ACK, body.len()), body.to_vec()].concat();
        let replies = exchange(&socket, &request, "ask for the generation of nftables")?;
        let id = replies.iter().find_map(|reply| find(reply.get(4..)?, NFTA_GEN_ID)?.first_chunk().copied());
        Ok(u32::from_be_bytes(id.unwrap_or_default()))
    })
    .await
}

/// As [`list`], with the handle that names each rule.
pub async fn list_with_handles(table: &str) -> Result<Option<String>> {
    let mut args = vec!["-s", "-a", "list", "table"];
    args.extend(table.split(' '));
    let listed = NFT.run(&format!("list nftables table {table}"), &args, "", &[0, 1]).await?;
    Ok(Some(listed).filter(|text| !text.is_empty()))
}

/// A table that is not there is fine.
pub async fn delete(table: &str) -> Result<()> {
    change(table, &format!("table {table}\ndelete table {table}\n")).await
}
