//! What several settings decide together: which parts run, and how the Kubernetes API is reached.

use crate::Error;
use crate::access::{Authority, KubeAccess, Token};
use crate::layers::Layered;
use crate::mode::Mode;
use crate::settings::{CommandLine, Settings};
use crate::source::Source;

/// The mode that the flags name. A mix that cannot run is an error; none at all is not, see [`Mode::is_empty`].
pub(crate) fn mode(flags: &CommandLine, layered: &Layered) -> Result<Mode, Error> {
    let named = [
        ("init-master", &flags.init_master),
        ("init-cluster-manager", &flags.init_cluster_manager),
        ("init-ovnkube-controller", &flags.init_ovnkube_controller),
        ("init-node", &flags.init_node),
        ("cleanup-node", &flags.cleanup_node),
        ("remove-node", &flags.remove_node),
    ];
    let given: Vec<(&str, &str)> =
        named.iter().filter_map(|(flag, value)| value.as_deref().map(|value| (*flag, value))).collect();
    for (flag, _) in &named {
        // an empty name is most likely a variable that was not set
        match layered.get("", flag) {
            Some(one) if one.source == Source::Flag => check_name(flag, &one.text)?,
            _ => {}
        }
    }
    alone(&given)?;
    if let [(first, name), rest @ ..] = given.as_slice()
        && let Some((other, another)) = rest.iter().find(|(_, other)| other != name)
    {
        return Err(Error::Usage(format!(
            "--{first} is {name:?} but --{other} is {another:?}; parts of one process must have the same name"
        )));
    }
    let mode = Mode {
        cluster_manager: flags.init_master.clone().or_else(|| flags.init_cluster_manager.clone()),
        controller: flags.init_master.clone().or_else(|| flags.init_ovnkube_controller.clone()),
        node: flags.init_node.clone(),
        cleanup_node: flags.cleanup_node.clone(),
        remove_node: flags.remove_node.clone(),
    };
    if mode.cluster_manager.is_some() && mode.node.is_some() && mode.controller.is_none() {
        return Err(Error::Usage(
            "--init-cluster-manager and --init-node need --init-ovnkube-controller in the same process; \
             add it, or write --init-master, or run them as two processes"
                .to_owned(),
        ));
    }
    Ok(mode)
}

/// `--cleanup-node` and `--remove-node` cannot be combined with another mode.
fn alone(given: &[(&str, &str)]) -> Result<(), Error> {
    let lonely = given.iter().find(|(flag, _)| matches!(*flag, "cleanup-node" | "remove-node"));
    match lonely.and_then(|(lonely, _)| given.iter().find(|(flag, _)| flag != lonely).map(|(other, _)| (lonely, other)))
    {
        Some((lonely, other)) => {
            let problem = format!("--{lonely} cannot be combined with another mode, but --{other} is given");
            Err(Error::Usage(format!("{problem}; leave one of them out")))
        }
        None => Ok(()),
    }
}

/// A node's name must be its name in Kubernetes; a master's name only identifies the holder of a lease.
fn check_name(flag: &str, name: &str) -> Result<(), Error> {
    let label = |label: &str| {
        !label.is_empty()
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
    };
    let (fine, rule) = if flag.ends_with("-node") {
        (name.split('.').all(label), "lower case letters, digits, dashes and dots, as kubectl get nodes shows it")
    } else {
        (!name.is_empty() && !name.contains(|c: char| c.is_whitespace() || c.is_control()), "this host's name")
    };
    if fine && name.len() <= 253 {
        return Ok(());
    }
    Err(Error::Usage(format!("--{flag} is {name:?}, which is not a name; write {rule}")))
}

/// Chooses between settings for the same thing: the higher layer wins. On a tie a kubeconfig wins over an
/// address, and a token file over a token, so that credentials that can rotate are preferred.
pub(crate) fn access(settings: &Settings, layered: &Layered) -> KubeAccess {
    let kubernetes = &settings.kubernetes;
    let rank = |key| layered.get("kubernetes", key).map_or(0, |one| one.source.rank());
    if let Some(path) = &kubernetes.kubeconfig
        && rank("kubeconfig") >= rank("apiserver")
    {
        return KubeAccess::Kubeconfig(path.clone());
    }
    let file = kubernetes.cacert.clone().map(Authority::File);
    let data = kubernetes.cacert_data.clone().map(Authority::Base64);
    let ca = if rank("cacert-data") > rank("cacert") { data.or(file) } else { file.or(data) };
    let token_file = kubernetes.token_file.clone().map(Token::File);
    let text = (!kubernetes.token.is_empty()).then(|| Token::Text(kubernetes.token.clone()));
    let token = if rank("token") > rank("tokenFile") { text.or(token_file) } else { token_file.or(text) };
    KubeAccess::Server { url: kubernetes.apiserver.clone(), ca, token }
}
