//! Tables of nftables, read and changed with the `nft` program.

use rtnetlink::sys::Socket;

use crate::netlink::{NLM_F_ACK, NLM_F_REQUEST, exchange, find, header};
use crate::netns::on_thread;
use crate::program::Program;
use crate::{Error, Result};

const NETLINK_NETFILTER: isize = 12;
const GETGEN: u16 = 10 << 8 | 16;
const NFTA_GEN_ID: u16 = 1;
/// With this code `nft` ends when it or the kernel refuses commands. With others it lacks memory or a socket.
const REFUSED: i32 = 1;
const NFT: Program = Program {
    name: "nft",
    package: "nftables",
    remedy: "see whether `nft list tables` ends, and what keeps the machine busy",
};

const UNSHARE: Program =
    Program { name: "unshare", package: "util-linux", remedy: "see whether `unshare --net nft list tables` ends" };

/// The table's rules without their counters; `None` when there is no such table.
pub async fn list(table: &str) -> Result<Option<String>> {
    listed(&["-s"], table).await
}

async fn listed(flags: &[&str], table: &str) -> Result<Option<String>> {
    let args: Vec<&str> = flags.iter().copied().chain(["list", "table"]).chain(table.split(' ')).collect();
    match NFT.run(&format!("list nftables table {table}"), &args, "", &[0]).await {
        Ok(text) => Ok(Some(text).filter(|text| !text.is_empty())),
        Err(Error::Program { said, code: Some(REFUSED), .. }) if is_missing(&said) => Ok(None),
        Err(e) => Err(e),
    }
}

/// Whether `nft` says that there is no such table: also where the kernel has no nftables, or not for the family.
fn is_missing(said: &str) -> bool {
    ["No such file or directory", "not supported"].iter().any(|why| said.contains(why))
}

/// Commands that make `table` hold `body` and nothing else. Commands appended to them run in the same transaction.
pub fn replacement(table: &str, body: &str) -> String {
    format!("table {table}\ndelete table {table}\ntable {table} {{\n{body}}}\n")
}

/// Runs `commands`, which name `table`, in one transaction.
pub async fn change(table: &str, commands: &str) -> Result<()> {
    NFT.run(&format!("change nftables table {table}"), &["-f", "-"], commands, &[0]).await.map(drop)
}

/// Whether the kernel would accept `commands`; runs none of them. The inner `Err` is the error message of `nft`.
pub async fn check(table: &str, commands: &str) -> Result<std::result::Result<(), String>> {
    let args = ["-c", "-f", "-"];
    match NFT.run(&format!("check a change of nftables table {table}"), &args, commands, &[0]).await {
        Ok(_) => Ok(Ok(())),
        Err(Error::Program { said, code: Some(REFUSED), .. }) => Ok(Err(said)),
        Err(e) => Err(e),
    }
}

/// Whether [`change`] failed because of the commands. An `nft` that hangs or is killed has refused nothing.
pub fn is_refusal(error: &Error) -> bool {
    matches!(error, Error::Program { code: Some(REFUSED), .. })
}

/// The generation of the ruleset, which each change by any program increments.
pub async fn generation() -> Result<u32> {
    on_thread(|| {
        let mut socket = Socket::new(NETLINK_NETFILTER).map_err(Error::Socket)?;
        socket.bind_auto().map_err(Error::Socket)?;
        let body = [0; 4];
        let request = [header(GETGEN, NLM_F_REQUEST | NLM_F_ACK, body.len()), body.to_vec()].concat();
        let replies = exchange(&socket, &request, "read the generation of nftables")?;
        let id = replies.iter().find_map(|reply| find(reply.get(4..)?, NFTA_GEN_ID)?.first_chunk().copied());
        Ok(u32::from_be_bytes(id.unwrap_or_default()))
    })
    .await
}

/// As [`list`], with the handle that names each rule.
pub async fn list_with_handles(table: &str) -> Result<Option<String>> {
    listed(&["-s", "-a"], table).await
}

/// What [`list`] would return for `table` after `commands`, which create it. They run in a new network namespace, so
/// nothing changes in this one.
pub async fn shown_after(table: &str, commands: &str) -> Result<String> {
    // a `list` command in the same run would not see the table yet
    let script = format!("nft -f - && nft -s list table {table}");
    UNSHARE.run(&format!("try nftables table {table}"), &["--net", "sh", "-ec", &script], commands, &[0]).await
}

/// Deletes the table; no error when it does not exist.
pub async fn delete(table: &str) -> Result<()> {
    change(table, &format!("table {table}\ndelete table {table}\n")).await
}

#[cfg(test)]
mod tests {
    use super::is_missing;

    /// An agent that takes a table that it cannot list for a missing one would write it again and again.
    #[test]
    fn not_every_refusal_means_that_there_is_no_table() {
        for said in [
            "Error: No such file or directory list table inet ovn-kubernetes ^^^^^^^^^^^^^^",
            "Error: No such file or directory; did you mean table 'b' in family ip? list table ip a ^",
            "netlink: Error: cache initialization failed: Protocol not supported",
        ] {
            assert!(is_missing(said), "{said}");
        }
        for said in [
            "Operation not permitted (you must be root)",
            "netlink: Error: cache initialization failed: Cannot allocate memory",
            "Error: Could not process rule: Device or resource busy",
        ] {
            assert!(!is_missing(said), "{said}");
        }
    }
}
