//! Asks other CNI plugins which versions they support.

use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use tokio::process::Command;

use crate::program::end;

/// Ample: the answer is built into the plugin.
const LIMIT: Duration = Duration::from_secs(5);

/// The CNI versions that the plugin at `path` supports; `Err`: why it does not report them.
pub async fn versions(path: &Path) -> Result<Vec<String>, String> {
    let mut command = Command::new(path);
    command.env_clear().env("CNI_COMMAND", "VERSION").env("CNI_PATH", path.parent().unwrap_or(Path::new("/")));
    let output = end(&mut command, r#"{"cniVersion":"0.4.0"}"#, LIMIT).await.map_err(|e| e.to_string())?;
    let output = output.ok_or_else(|| format!("it did not end within {} s", LIMIT.as_secs()))?;
    let answer: Value = serde_json::from_slice(&output.stdout).map_err(|e| format!("its answer: {e}"))?;
    let versions = answer.get("supportedVersions").and_then(Value::as_array).into_iter().flatten();
    Ok(versions.filter_map(Value::as_str).map(str::to_owned).collect())
}
