//! Tables of nftables, through the `nft` program.

use crate::Result;
use crate::program::Program;

const NFT: Program = Program { name: "nft", package: "nftables" };

/// The table's rules without their counters; `None` when there is no such table.
pub async fn list(table: &str) -> Result<Option<String>> {
    let mut args = vec!["-s", "list", "table"];
    args.extend(table.split(' '));
    let listed = NFT.run(&format!("list nftables table {table}"), &args, "", &[0, 1]).await?;
    Ok(Some(listed).filter(|text| !text.is_empty()))
}

/// Makes `table` hold `body`, then runs `more` commands, which may name it; at no time there is
/// neither the old nor the new.
pub async fn replace(table: &str, body: &str, more: &str) -> Result<()> {
    let text = format!("table {table}\ndelete table {table}\ntable {table} {{\n{body}}}\n{more}");
    NFT.run(&format!("write nftables table {table}"), &["-f", "-"], &text, &[0]).await.map(drop)
}

/// Runs `commands`, which name `table`: all of them or none.
pub async fn change(table: &str, commands: &str) -> Result<()> {
    NFT.run(&format!("change nftables table {table}"), &["-f", "-"], commands, &[0]).await.map(drop)
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
