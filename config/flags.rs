//! The command line: Go's flag style over clap.
//!
//! `-name` is `--name`; a value follows after `=` or as the next word, whatever that word looks like;
//! a boolean has no value or takes `=true`, `=F`, `=0`…; the last of a repeated flag counts; old names
//! are accepted, with a note. The only word that is not a flag is the command.

use std::ffi::{OsStr, OsString};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use clap::builder::{PossibleValue, StringValueParser};
use std::path::PathBuf;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgAction, ArgMatches};

use crate::Error;
use crate::commands::{self, COMMANDS};
use crate::db_command::{self, DbCommand};
use crate::event_command::{self, EventCommand};
use crate::ic_command::{self, IcCommand};
use crate::layers::Layer;
use crate::probe::Target;
use crate::settings::{HEADINGS, SETTINGS};
use crate::source::Source;
use crate::system::after_equals;
use crate::table::{Kind, Setting, nearest};
use crate::values::{Dialect, canonical, go_bool};

/// What the process is asked to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Run the parts that the mode flags name.
    Run,
    /// Print every effective value and its layer.
    Config {
        /// As JSON instead of a table.
        json: bool,
    },
    /// Print what the node agent would change on this host.
    Plan {
        /// The node's name in Kubernetes.
        node: String,
    },
    /// Print what to do before ovnkube takes over the cluster, or works on this host.
    Preflight {
        /// This host, in place of the cluster.
        node: bool,
    },
    /// Print where the databases in pods are, as soon as that is known.
    EndpointsWait,
    /// Make known where the databases in pods are.
    EndpointsPublish {
        /// At least one.
        addresses: Vec<IpAddr>,
        ports: DatabasePorts,
    },
    /// Report as an Event why a container of a pod ends.
    Event(EventCommand),
    /// Copy the CNI program to the directory of the settings.
    InstallCni { program: PathBuf },
    /// Tell whether a program on this host works.
    ReadinessProbe(Target),
    /// About the servers of the databases.
    Db(DbCommand),
    /// About the interconnection with other clusters.
    Ic(IcCommand),
    /// Serve the admission webhook, approve the certificates of node agents, or both.
    Identity(IdentityFlags),
    /// Print what a recording leads to.
    Replay {
        /// Made with `--record`.
        file: PathBuf,
    },
    /// Print whether policies allow a connection, and which of them decided.
    Why {
        /// `namespace/name` of a pod, or an address.
        from: String,
        to: String,
        /// `PORT` or `PORT/PROTOCOL`.
        port: String,
        /// A directory of objects in place of the cluster.
        objects: Option<PathBuf>,
    },
    /// Print this text (help or version) and end.
    Print(String),
}

/// The ports of the two databases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DatabasePorts {
    pub north: u16,
    pub south: u16,
}

/// What the command identity does: at least one of both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdentityFlags {
    /// Serve the webhook.
    pub webhook: Option<WebhookFlags>,
    /// Approve the certificates of node agents.
    pub approver: bool,
}

/// What only the admission webhook has to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookFlags {
    /// Of `tls.crt` and `tls.key`.
    pub certificates: PathBuf,
    /// To listen on.
    pub address: SocketAddr,
}

/// A parsed command line.
pub(crate) struct CommandLine {
    pub(crate) command: Command,
    pub(crate) layer: Layer,
    pub(crate) notes: Vec<String>,
}

/// Long flags that are not settings.
const CLAPS_OWN: [&str; 12] = [
    "help",
    "version",
    "output",
    "from",
    "node",
    "force",
    "target",
    "webhook-cert-dir",
    "webhook-host",
    "webhook-port",
    "disable-webhook",
    "disable-approver",
];

/// Those of the command identity: name, metavariable, text.
const IDENTITY: [(&str, &str, &str); 5] = [
    ("webhook-cert-dir", "directory", "identity: directory of the certificate tls.crt and its key tls.key."),
    ("webhook-host", "address", "identity: address to listen on; localhost is 127.0.0.1. [default: localhost]"),
    ("webhook-port", "port", "identity: TCP port to listen on. [default: 9443]"),
    ("disable-webhook", "bool", "identity: do not serve the webhook."),
    ("disable-approver", "bool", "identity: do not approve certificates of node agents."),
];

/// Where the image has it.
const CNI_PROGRAM: &str = "/usr/libexec/cni/ovn-k8s-cni-overlay";

/// As of ovn-kubernetes' webhook.
const WEBHOOK_PORT: u16 = 9443;

/// Position of help in the list of flags.
const LAST: usize = 998;

/// Parses a command line (without the program's name).
pub(crate) fn parse(args: impl Iterator<Item = OsString>) -> Result<CommandLine, Error> {
    let mut notes = Vec::new();
    let words = normalise(args, &mut notes)?;
    let matches = match clap_command().try_get_matches_from(words) {
        Ok(matches) => matches,
        Err(error) if error.kind() == ErrorKind::DisplayVersion => {
            let command = Command::Print(error.render().to_string());
            return Ok(CommandLine { command, layer: Layer::default(), notes });
        }
        Err(error) => return Err(usage(&error)),
    };
    let mut layer = Layer::default();
    for setting in SETTINGS.iter().filter(|setting| !setting.flag.is_empty()) {
        if let Some(text) = matches.get_one::<String>(setting.flag) {
            let text = canonical(setting.kind, Dialect::Flag, text)
                .map_err(|problem| Error::value(setting, &Source::Flag, text, problem))?;
            layer.set(setting, text, Source::Flag);
        }
    }
    let command = command(&matches)?;
    if matches!(command, Command::Db(_) | Command::Ic(_)) {
        none_empty(&matches)?;
    }
    Ok(CommandLine { command, layer, notes })
}

/// An empty flag is the default for a daemon, whose scripts pass on what may not be set. A command of an operator would look
/// at, or change, something else than what is meant.
fn none_empty(matches: &ArgMatches) -> Result<(), Error> {
    let is_empty = |setting: &&Setting| {
        !setting.flag.is_empty() && matches.get_one::<String>(setting.flag).is_some_and(|text| text.trim().is_empty())
    };
    match SETTINGS.iter().find(is_empty) {
        Some(setting) => Err(Error::Usage(format!("--{} is empty; write its value, or leave it out", setting.flag))),
        None => Ok(()),
    }
}

/// The whole help text.
pub fn help() -> String {
    clap_command().render_help().to_string()
}

/// The command line as the man page and the completions of shells show it: with the commands as its first word.
pub fn documented() -> clap::Command {
    let words = COMMANDS.iter().map(|known| PossibleValue::new(known.word).help(known.does));
    clap_command().mut_arg("words", |arg| {
        arg.hide(false).value_name("COMMAND").num_args(0..=1).value_parser(words.collect::<Vec<_>>())
    })
}

/// The flag of this name, old or new, and its row.
fn find(name: &str) -> Option<(&'static Setting, bool)> {
    SETTINGS.iter().filter(|setting| !setting.flag.is_empty()).find_map(|setting| {
        let old = setting.aliases.contains(&name);
        (setting.flag == name || old).then_some((setting, old))
    })
}

/// Converts Go's spelling to clap's: two dashes, current names, values behind `=`.
fn normalise(args: impl Iterator<Item = OsString>, notes: &mut Vec<String>) -> Result<Vec<OsString>, Error> {
    let mut args = args;
    let mut words = Vec::new();
    let mut switch: Option<&str> = None;
    while let Some(word) = args.next() {
        let before = switch.take();
        let bytes = word.as_encoded_bytes();
        if let Some(flag) = before
            && word.to_str().is_some_and(|text| go_bool(text).is_some())
        {
            let value = word.to_string_lossy();
            return Err(Error::Usage(format!("--{flag} takes no separate value; write --{flag}={value}")));
        }
        if bytes == b"--" {
            words.push(word);
            words.extend(args);
            break;
        }
        let Some((name, value)) = long_flag(&word) else {
            words.push(word);
            continue;
        };
        let Some((setting, old)) = find(&name) else {
            if !CLAPS_OWN.contains(&name.as_str()) {
                return Err(unknown_flag(&name));
            }
            words.push(joined(&name, value.as_deref()));
            continue;
        };
        if old {
            notes.push(format!("--{name} is an old name; write --{}", setting.flag));
        }
        let value = match (setting.kind, value) {
            (Kind::Bool, None) => {
                switch = Some(setting.flag);
                None
            }
            (_, Some(value)) => Some(value),
            (_, None) => {
                Some(args.next().ok_or_else(|| Error::Usage(format!("--{name} has no value; write --{name}=VALUE")))?)
            }
        };
        words.push(joined(setting.flag, value.as_deref()));
    }
    Ok(words)
}

/// `-name`, `--name`, `-name=value`; single letters such as `-o` are not long flags.
fn long_flag(word: &OsStr) -> Option<(String, Option<OsString>)> {
    let text = word.to_string_lossy();
    let body = text.strip_prefix("--").or_else(|| text.strip_prefix('-'))?;
    let name = body.split('=').next().unwrap_or(body);
    let long = name.chars().count() > 1 || text.starts_with("--");
    if !long || name.starts_with('-') || !name.starts_with(char::is_alphabetic) {
        return None;
    }
    // a value that is not UTF-8 is kept unchanged, so that the error shows what was given
    let value = body.contains('=').then(|| after_equals(word));
    Some((name.to_owned(), value))
}

fn joined(name: &str, value: Option<&OsStr>) -> OsString {
    let mut word = OsString::from(format!("--{name}"));
    if let Some(value) = value {
        word.push("=");
        word.push(value);
    }
    word
}

fn clap_command() -> clap::Command {
    let mut command = clap::Command::new("ovnkube")
        .version(env!("CARGO_PKG_VERSION"))
        .about("Turns a Kubernetes cluster's objects into an OVN network: master, node agent or both.")
        .override_usage("ovnkube [COMMAND] [FLAGS]\n       ovnkube --init-master NAME --init-node NAME [FLAGS]")
        .before_help(
            "The first of these that sets a value wins: flag, configuration file, environment variable, service account.",
        )
        .after_help(format!(
            "{}\nFlags may be written with one dash or two, as -name value, -name=value. Booleans: -name, -name=false.",
            commands::list()
        ))
        .no_binary_name(true)
        .args_override_self(true)
        .disable_help_flag(true)
        .next_line_help(true)
        .term_width(100)
        .arg(
            Arg::new("output")
                .short('o')
                .long("output")
                .value_name("format")
                .value_parser(["text", "json"])
                .default_value("text")
                .hide_default_value(true)
                .help("Output format of a command: text or json.")
                .display_order(0),
        )
        .arg(
            Arg::new("from")
                .long("from")
                .value_name("directory")
                .help("why: read the objects from the YAML and JSON files of this directory, not from the cluster.")
                .display_order(0),
        )
        .arg(
            Arg::new("node")
                .long("node")
                .value_name("string")
                .num_args(0..=1)
                .default_missing_value("")
                .help("plan: the node's name in Kubernetes. preflight, without a name: look at this host, not at the cluster.")
                .display_order(0),
        )
        .arg(
            switch(Arg::new("force").long("force"))
                .value_name("bool")
                .help("ic clean: also remove a cluster that answers, or may be alive.")
                .display_order(0),
        )
        .arg(
            Arg::new("target")
                .short('t')
                .long("target")
                .value_name("target")
                .help("readiness-probe: the program to ask.")
                .display_order(0),
        )
        // which help to print is known only when all words are read
        .arg(Arg::new("help").short('h').long("help").action(ArgAction::SetTrue).help("Print help").display_order(LAST))
        .arg(Arg::new("words").num_args(0..).hide(true));
    for (name, value, help) in IDENTITY {
        let arg = Arg::new(name).long(name).value_name(value).help(help).display_order(0);
        command = command.arg(if value == "bool" { switch(arg) } else { arg });
    }
    for (order, setting) in SETTINGS.iter().filter(|setting| !setting.flag.is_empty()).enumerate() {
        command = command.arg(clap_arg(setting).display_order(order + 1));
    }
    command
}

fn clap_arg(setting: &'static Setting) -> Arg {
    let heading = HEADINGS.iter().find(|(section, _)| *section == setting.section).map_or("", |(_, heading)| heading);
    let arg = Arg::new(setting.flag)
        .long(setting.flag)
        .visible_aliases(setting.aliases)
        .action(ArgAction::Set)
        .value_parser(StringValueParser::new())
        .help(crate::help::flag_help(setting))
        .help_heading(heading.trim());
    match setting.kind {
        Kind::Bool => switch(arg).value_name("bool"),
        Kind::Int => arg.value_name("int"),
        Kind::Text(word) => arg.value_name(word),
    }
}

/// A boolean: without a value it is true.
fn switch(arg: Arg) -> Arg {
    arg.num_args(0..=1).require_equals(true).default_missing_value("true")
}

fn command(matches: &ArgMatches) -> Result<Command, Error> {
    let json = matches.get_one::<String>("output").is_some_and(|format| format == "json");
    let mut words = matches.get_many::<String>("words").into_iter().flatten().map(String::as_str);
    if matches.get_flag("help") {
        return help_about(words.next());
    }
    let force = is_on(matches, "force")?;
    let command = match words.next() {
        None => Command::Run,
        Some("config") => Command::Config { json },
        Some("plan") => {
            let node = matches.get_one::<String>("node").cloned();
            let unnamed = || Error::Usage("plan needs the node's name; write ovnkube plan --node NAME".into());
            Command::Plan { node: node.filter(|node| !node.is_empty()).ok_or_else(unnamed)? }
        }
        Some("preflight") => {
            let node = matches.get_one::<String>("node");
            if let Some(name) = node.filter(|name| !name.is_empty()) {
                let problem = "preflight looks at the host that it runs on; write --node without";
                return Err(Error::Usage(format!("{problem} {name:?}")));
            }
            Command::Preflight { node: node.is_some() }
        }
        Some("db") => Command::Db(db_command::parse(&mut words, json)?),
        Some("ic") => Command::Ic(ic_command::parse(&mut words, json, force)?),
        Some("endpoints") => endpoints(&mut words)?,
        Some("event") => Command::Event(event_command::parse(&mut words)?),
        Some("identity") => Command::Identity(identity(matches)?),
        Some("install-cni") => Command::InstallCni { program: words.next().unwrap_or(CNI_PROGRAM).into() },
        Some("readiness-probe") => Command::ReadinessProbe(Target::parse(given(matches, "target"))?),
        Some("replay") => {
            let file =
                words.next().ok_or_else(|| Error::Usage("replay needs a file; give one made with --record".into()))?;
            Command::Replay { file: file.into() }
        }
        Some("why") => {
            let mut word = || {
                let wanted =
                    "why needs source, destination and port; write ovnkube why default/client default/server 80";
                words.next().map(str::to_owned).ok_or_else(|| Error::Usage(wanted.into()))
            };
            let (from, to, port) = (word()?, word()?, word()?);
            Command::Why { from, to, port, objects: matches.get_one::<String>("from").map(Into::into) }
        }
        Some("help") => help_about(words.next())?,
        Some(word) => return Err(unknown_command(word)),
    };
    if matches.contains_id("from") && !matches!(command, Command::Why { .. } | Command::Print(_)) {
        return Err(Error::Usage("--from works with why only; leave it out".into()));
    }
    let takes_node = matches!(command, Command::Plan { .. } | Command::Preflight { .. } | Command::Print(_));
    if matches.contains_id("node") && !takes_node {
        let problem = "--node works with plan and preflight only; the agent is started by --init-node NAME";
        return Err(Error::Usage(problem.into()));
    }
    if matches.contains_id("target") && !matches!(command, Command::ReadinessProbe(_) | Command::Print(_)) {
        return Err(Error::Usage("--target works with readiness-probe only; leave it out".into()));
    }
    if force && !matches!(command, Command::Ic(_) | Command::Print(_)) {
        return Err(Error::Usage("--force works with ic clean only; leave it out".into()));
    }
    if let Some((flag, ..)) = IDENTITY.iter().find(|(flag, ..)| matches.contains_id(flag))
        && !matches!(command, Command::Identity(_) | Command::Print(_))
    {
        return Err(Error::Usage(format!("--{flag} works with identity only; leave it out")));
    }
    match words.next() {
        None => Ok(command),
        Some(word) => Err(Error::Usage(format!("{word:?} is an unexpected argument; flags begin with a dash"))),
    }
}

fn endpoints<'a>(words: &mut impl Iterator<Item = &'a str>) -> Result<Command, Error> {
    const WANTED: &str = "write ovnkube endpoints wait, or ovnkube endpoints publish 10.0.0.1 6641 6642";
    let wrong = |what: &str| Error::Usage(format!("endpoints {what}; {WANTED}"));
    match words.next() {
        Some("wait") => Ok(Command::EndpointsWait),
        Some("publish") => {
            let addresses = words.next().ok_or_else(|| wrong("publish needs the databases' address"))?;
            let parsed: Result<Vec<IpAddr>, _> = addresses.split(',').map(str::parse).collect();
            let addresses = parsed.map_err(|_| wrong(&format!("publish: {addresses:?} is no address")))?;
            let mut port = || {
                let text = words.next().ok_or_else(|| wrong("publish needs two ports"))?;
                text.parse()
                    .ok()
                    .filter(|port| *port != 0)
                    .ok_or_else(|| wrong(&format!("publish: {text:?} is no port")))
            };
            let ports = DatabasePorts { north: port()?, south: port()? };
            Ok(Command::EndpointsPublish { addresses, ports })
        }
        _ => Err(wrong("needs to know what to do")),
    }
}

/// A flag of a command that is true or false.
fn is_on(matches: &ArgMatches, flag: &str) -> Result<bool, Error> {
    match given(matches, flag) {
        None => Ok(false),
        Some(text) => go_bool(text).ok_or_else(|| wrong(flag, text, "true or false")),
    }
}

fn given<'a>(matches: &'a ArgMatches, flag: &str) -> Option<&'a str> {
    matches.get_one::<String>(flag).map(String::as_str).filter(|text| !text.is_empty())
}

fn wrong(flag: &str, text: &str, remedy: &str) -> Error {
    Error::Usage(format!("--{flag} is {text:?}; write {remedy}"))
}

fn identity(matches: &ArgMatches) -> Result<IdentityFlags, Error> {
    let given = |flag| given(matches, flag);
    let approver = !is_on(matches, "disable-approver")?;
    if is_on(matches, "disable-webhook")? {
        if !approver {
            let problem = "--disable-webhook and --disable-approver leave nothing to do; leave one of them out";
            return Err(Error::Usage(problem.into()));
        }
        return Ok(IdentityFlags { webhook: None, approver });
    }
    let certificates = given("webhook-cert-dir").ok_or_else(|| {
        let problem = "identity needs a certificate; name the directory of tls.crt and tls.key with --webhook-cert-dir";
        Error::Usage(problem.into())
    })?;
    let host = match given("webhook-host") {
        None | Some("localhost") => IpAddr::V4(Ipv4Addr::LOCALHOST),
        Some(text) => text.parse().map_err(|_| wrong("webhook-host", text, "an address of this host, or localhost"))?,
    };
    let port = match given("webhook-port") {
        None => WEBHOOK_PORT,
        Some(text) => text.parse().map_err(|_| wrong("webhook-port", text, "a number from 1 to 65535"))?,
    };
    let webhook = WebhookFlags { certificates: certificates.into(), address: SocketAddr::new(host, port) };
    Ok(IdentityFlags { webhook: Some(webhook), approver })
}

/// The help of one command, or the whole help.
fn help_about(word: Option<&str>) -> Result<Command, Error> {
    let Some(word) = word.filter(|word| *word != "help") else { return Ok(Command::Print(help())) };
    let known = commands::find(word).ok_or_else(|| unknown_command(word))?;
    Ok(Command::Print(known.help(clap_command().get_arguments())))
}

/// A role that people may look for.
const NO_ROLE: &str = "init-ic-controller";

fn unknown_flag(name: &str) -> Error {
    if name == NO_ROLE {
        return Error::Usage(format!(
            "there is no flag --{NO_ROLE}; leave it out: what joins clusters is part of --init-master and --init-ovnkube-controller, and \
             does what the ConfigMap ovn-ic-config says"
        ));
    }
    let names = SETTINGS.iter().map(|setting| setting.flag).filter(|flag| !flag.is_empty()).chain(CLAPS_OWN);
    let hint = nearest(name, names).map(|near| format!("did you mean --{near}? ")).unwrap_or_default();
    Error::Usage(format!("flag --{} is unknown; {hint}--help lists all", name.escape_debug()))
}

fn unknown_command(word: &str) -> Error {
    let known: Vec<&str> = COMMANDS.iter().map(|known| known.word).collect();
    let hint = nearest(word, known.iter().copied()).map(|near| format!("did you mean {near}? ")).unwrap_or_default();
    Error::Usage(format!("command {word:?} is unknown; {hint}known commands: {}", known.join(", ")))
}

/// clap's paragraphs of an error as one line.
fn usage(error: &clap::Error) -> Error {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        Some(ContextValue::Strings(texts)) => texts.first().cloned(),
        _ => None,
    };
    let flag = text(ContextKind::InvalidArg).unwrap_or_default();
    Error::Usage(match error.kind() {
        ErrorKind::UnknownArgument => format!("flag {} is unknown; --help lists all", flag.escape_debug()),
        ErrorKind::InvalidUtf8 => "a flag's value is not UTF-8 text; write it in UTF-8".to_owned(),
        ErrorKind::InvalidValue => {
            let value = text(ContextKind::InvalidValue).unwrap_or_default();
            format!("{flag} is {value:?}; write text or json")
        }
        _ => error.render().to_string().lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned(),
    })
}
