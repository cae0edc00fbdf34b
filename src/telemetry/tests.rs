use std::cell::RefCell;
use std::fs::{self, read_to_string};
use std::io::{self, Write};
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use axum::http::StatusCode;
use axum::response::IntoResponse;
use prometheus_client::metrics::counter::Counter;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tracing::Level;

use crate::logs::{Lines, filter, log_file};
use crate::node_health::Moment;
use crate::{
    Clusters, Connected, Error, LogLimits, LogSettings, Metrics, NodeHealth, Northd, NorthdState, OtherCluster,
    Readiness, Sources, keep_serving, serve,
};

#[test]
fn levels_are_those_of_the_contract() {
    let shown = |level: u8, target: &str| {
        let filter = filter(level).unwrap();
        [Level::ERROR, Level::WARN, Level::INFO, Level::DEBUG].iter().filter(|l| filter.would_enable(target, l)).count()
    };
    assert_eq!([1, 2, 3, 4, 5].map(|level| shown(level, "ovnkube_watch::stream")), [0, 1, 2, 3, 4]);
    assert_eq!([1, 2, 3, 4, 5].map(|level| shown(level, "hyper::proto")), [0, 1, 2, 2, 2]);
    assert_eq!([1, 5].map(|level| shown(level, crate::FATAL)), [1, 1]);
    assert!(matches!(filter(0), Err(Error::LogLevel(0))));
    assert_eq!(
        filter(9).unwrap_err().to_string(),
        "cannot use loglevel 9: it is not known; write 1 (fatal), 2 (error), 3 (warning), 4 (info) or 5 (debug)"
    );
}

#[test]
fn log_file_that_cannot_be_opened_is_one_line_with_a_remedy() {
    let error = log_file("/nonexistent/ovnkube.log".into(), LogLimits::default()).unwrap_err().to_string();
    assert_eq!(
        error,
        "cannot open log file /nonexistent/ovnkube.log: No such file or directory (os error 2); \
         set logfile to a file in a directory that exists and is writable"
    );
}

/// A file of a disk that has room or not.
#[derive(Clone, Default)]
struct Disk(Rc<RefCell<(bool, Vec<u8>)>>);

impl Write for Disk {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let (room, text) = &mut *self.0.borrow_mut();
        // of a line that does not fit, a part may
        text.extend(line.iter().take(if *room { line.len() } else { 2 }));
        if *room { Ok(line.len()) } else { Err(io::ErrorKind::StorageFull.into()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn lines_without_room_are_counted_and_no_error() {
    let disk = Disk::default();
    let mut lines = Lines::to(disk.clone(), None);
    for (room, line) in
        [(true, "first\n"), (false, "second\n"), (false, "third\n"), (true, "fourth\n"), (true, "fifth\n")]
    {
        disk.0.borrow_mut().0 = room;
        lines.write_all(line.as_bytes()).unwrap();
    }
    let text = String::from_utf8(disk.0.borrow().1.clone()).unwrap();
    let (before, after) = text.split_once("  WARN ").unwrap();
    assert!(before.starts_with("first\nse\n"), "{text}");
    assert_eq!(after, "ovnkube: 2 lines before this one are lost\nfourth\nfifth\n");
}

/// The series of interconnection.
fn joined_series(metrics: &Metrics) -> Vec<String> {
    let text = metrics.text().unwrap();
    text.lines().filter(|line| line.starts_with("ovnkube_interconnection_")).map(str::to_owned).collect()
}

#[test]
fn interconnection_has_series_while_it_is_kept() {
    let metrics = Metrics::new("1.2.3");
    assert!(joined_series(&metrics).is_empty());
    metrics.interconnection.connected(Some(Connected { north: true, south: false }));
    let others = [("az2".to_owned(), OtherCluster { gateways: 3, used: 6, refused: 1, silent: true })];
    metrics.interconnection.clusters(Some(Clusters { others: others.into(), problems: 2 }));
    assert_eq!(
        joined_series(&metrics),
        [
            "ovnkube_interconnection_database_connected{database=\"OVN_IC_Northbound\"} 1",
            "ovnkube_interconnection_database_connected{database=\"OVN_IC_Southbound\"} 0",
            "ovnkube_interconnection_clusters 1",
            "ovnkube_interconnection_problems 2",
            "ovnkube_interconnection_gateways{az=\"az2\"} 3",
            "ovnkube_interconnection_routes{az=\"az2\",state=\"used\"} 6",
            "ovnkube_interconnection_routes{az=\"az2\",state=\"refused\"} 1",
            "ovnkube_interconnection_silent{az=\"az2\"} 1",
        ]
    );
    metrics.interconnection.connected(None);
    metrics.interconnection.clusters(None);
    assert!(joined_series(&metrics).is_empty());
}

/// However many clusters there are and whatever names they have, there are only so many series.
#[test]
fn names_of_other_clusters_make_a_bounded_number_of_series() {
    let metrics = Metrics::new("1.2.3");
    let odd = ["", "a\"} 1\nx{y=\"", "(others)", "ä"].map(str::to_owned);
    let names = (0..10_000).map(|n| format!("az{n:05}")).chain(odd).chain(["a".repeat(64)]);
    let one = OtherCluster { gateways: 1, used: 2, refused: 3, silent: false };
    metrics.interconnection.clusters(Some(Clusters { others: names.map(|name| (name, one)).collect(), problems: 0 }));
    let series = joined_series(&metrics);
    assert_eq!(series.len(), 2 + 4 * 65, "{series:?}");
    assert!(series.contains(&"ovnkube_interconnection_clusters 10005".to_owned()), "{series:?}");
    let rest = "ovnkube_interconnection_routes{az=\"(others)\",state=\"used\"} 19882";
    assert!(series.contains(&rest.to_owned()), "{series:?}");
}

#[test]
fn northd_has_series_for_what_is_known() {
    let metrics = Metrics::new("test");
    let series = |northd| {
        metrics.northd.seen(northd);
        let text = metrics.text().unwrap();
        let lines = text.lines().filter(|line| line.starts_with("ovnkube_northd_"));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    assert!(series(Northd::default()).is_empty());
    assert_eq!(series(Northd { is_active: Some(false), here: None }), ["ovnkube_northd_active 0"]);
    assert_eq!(
        series(Northd { is_active: Some(true), here: Some(NorthdState::of("standby")) }),
        [
            "ovnkube_northd_active 1",
            "ovnkube_northd_here{state=\"active\"} 0",
            "ovnkube_northd_here{state=\"standby\"} 1",
            "ovnkube_northd_here{state=\"paused\"} 0",
            "ovnkube_northd_here{state=\"silent\"} 0",
        ]
    );
    assert_eq!(NorthdState::of("no answer: it was silent for 3 s"), NorthdState::Silent);
}

async fn ask(address: std::net::SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    text
}

#[tokio::test]
async fn the_server_reports_metrics_and_health() {
    let metrics = Metrics::new("1.2.3");
    let mine = Counter::<u64>::default();
    metrics.register("ovnkube_mine", "Mine", mine.clone());
    mine.inc_by(3);
    metrics.register_leader("ovnkube_controller_leader");
    metrics.leader.set(1);
    let readiness = Readiness::default();
    readiness.wait("nb", "no connection to tcp:127.0.0.1:6641");
    let sources = Sources { key: "metrics-bind-address", metrics, readiness: readiness.clone(), node: None };
    // below, clients ask while nobody listens: at 127.0.0.1, from where they come, one could connect to itself
    let (address, served) = serve("127.0.0.2:0".parse().unwrap(), sources.clone()).await.unwrap();

    let text = ask(address, "/metrics").await;
    assert!(text.starts_with("HTTP/1.1 200"), "{text}");
    for line in
        ["ovnkube_build_info{version=\"1.2.3\"} 1", "ovnkube_mine_total 3", "ovnkube_controller_leader 1", "# EOF"]
    {
        assert!(text.lines().any(|l| l == line), "{line} is not in {text}");
    }
    let memory = text.lines().find_map(|l| l.strip_prefix("process_resident_memory_bytes ")).unwrap();
    assert!(memory.parse::<u64>().unwrap() > 100_000, "{memory}");
    let cpu = text.lines().find_map(|l| l.strip_prefix("process_cpu_seconds_total ")).unwrap();
    assert!(cpu.parse::<f64>().unwrap() >= 0.0, "{cpu}");

    assert!(ask(address, "/healthz").await.starts_with("HTTP/1.1 200"));
    let waiting = ask(address, "/readyz").await;
    assert!(
        waiting.starts_with("HTTP/1.1 503") && waiting.ends_with("nb: no connection to tcp:127.0.0.1:6641\n"),
        "{waiting}"
    );
    readiness.ready("nb");
    assert!(ask(address, "/readyz").await.starts_with("HTTP/1.1 200"));
    assert!(ask(address, "/debug/pprof").await.starts_with("HTTP/1.1 404"));

    let taken = serve(address, sources.clone()).await.unwrap_err().to_string();
    assert!(taken.starts_with(&format!("cannot listen on {address}: Address already in use")), "{taken}");
    assert!(taken.ends_with("or set another metrics-bind-address"), "{taken}");

    // another process on the host has the address for now
    tokio::spawn(keep_serving(address, sources));
    tokio::time::sleep(Duration::from_millis(200)).await;
    drop(served);
    let deadline = std::time::Instant::now() + Duration::from_secs(120);
    while !is_answered(address).await {
        assert!(std::time::Instant::now() < deadline, "{address} was not taken over");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

async fn is_answered(address: SocketAddr) -> bool {
    let Ok(mut stream) = TcpStream::connect(address).await else { return false };
    let mut text = String::new();
    let sent = stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n").await;
    sent.is_ok() && stream.read_to_string(&mut text).await.is_ok() && text.starts_with("HTTP/1.1 200")
}

/// Any client may open connections and send nothing.
#[tokio::test]
async fn silent_clients_hold_up_nobody() {
    let key = "metrics-bind-address";
    let sources = Sources { key, metrics: Metrics::new("x"), readiness: Readiness::default(), node: None };
    let (address, _served) = serve("127.0.0.1:0".parse().unwrap(), sources).await.unwrap();
    let files = || fs::read_dir("/proc/self/fd").unwrap().count();
    let before = files();
    let mut silent = Vec::new();
    for _ in 0..600 {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(b"GET /hea").await.unwrap();
        silent.push(stream);
    }
    let since = std::time::Instant::now();
    // they end after 5 s
    assert!(is_answered(address).await && since.elapsed() < Duration::from_secs(4), "{:?}", since.elapsed());
    // ours, at most 256 and one of the other end, and those of tests that run at the same time
    assert!(files() - before < 600 + 400, "{} files", files() - before);
}

#[test]
fn logging_goes_to_the_file_and_starts_once() {
    let directory = std::env::temp_dir().join(format!("ovnkube-telemetry-{}", std::process::id()));
    fs::create_dir_all(&directory).unwrap();
    let settings = LogSettings { file: Some(directory.join("o.log")), level: 3, ..LogSettings::default() };
    crate::start_logging(&settings).unwrap();
    tracing::info!(target: "ovnkube_x", "not shown");
    tracing::warn!(target: "ovnkube_x", node = "n1", "shown");
    let text = read_to_string(directory.join("o.log")).unwrap();
    assert!(text.contains("WARN ovnkube_x: shown node=\"n1\"") && text.lines().count() == 1, "{text}");
    assert!(matches!(crate::start_logging(&settings), Err(Error::LoggingTwice)));
    fs::remove_dir_all(directory).unwrap();
}

/// The replies to a load balancer in front of the nodes.
#[tokio::test]
async fn a_node_is_healthy_while_its_services_are_programmed() {
    let health = NodeHealth::default();
    let local = "127.0.0.1:0".parse().unwrap();
    let sources = Sources {
        key: "metrics-bind-address",
        metrics: Metrics::new("x"),
        readiness: Readiness::default(),
        node: Some(health.clone()),
    };
    let (address, _served) = serve(local, sources).await.unwrap();
    let status = async |path| ask(address, path).await[9..12].to_owned();
    assert_eq!(status("/healthz").await, "503");
    assert_eq!(status("/livez").await, "503");
    health.set_programmed(true);
    let answer = ask(address, "/healthz").await;
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with(r#"Z", "nodeEligible": true}"#), "{answer}");
    health.set_leaving(true);
    let answer = ask(address, "/healthz").await;
    assert!(answer.starts_with("HTTP/1.1 503") && answer.ends_with(r#""nodeEligible": false}"#), "{answer}");
    assert_eq!(status("/livez").await, "200");
    health.set_leaving(false);

    health.set_programmed(false);
    assert_eq!(status("/healthz").await, "200", "a moment is forgiven");
    // someone sets the clock meanwhile
    let hour = jiff::SignedDuration::from_hours(1);
    let at = |seconds, stamp| Moment { instant: std::time::Instant::now() + Duration::from_secs(seconds), stamp };
    let later = |seconds| at(seconds, jiff::Timestamp::now() - hour);
    let ahead = at(50, jiff::Timestamp::now() + hour);
    assert_eq!(health.answer(ahead, true).into_response().status(), StatusCode::OK);
    assert_eq!(health.answer(later(50), true).into_response().status(), StatusCode::OK);
    assert_eq!(health.answer(later(70), true).into_response().status(), StatusCode::SERVICE_UNAVAILABLE);
    health.set_programmed(true);
    assert_eq!(health.answer(later(1000), true).into_response().status(), StatusCode::OK, "nothing has to change");

    // as above, for a switch that does not answer
    tokio::time::timeout(Duration::from_secs(60), health.asked()).await.expect("to be told of the questions");
    health.set_answering(false);
    assert_eq!(status("/healthz").await, "200", "a moment is forgiven");
    assert_eq!(health.answer(later(70), true).into_response().status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(health.answer(later(70), false).into_response().status(), StatusCode::OK, "a restart would not help");
    health.set_programmed(true);
    assert_eq!(health.answer(later(70), true).into_response().status(), StatusCode::SERVICE_UNAVAILABLE);
    health.set_answering(true);
    assert_eq!(health.answer(later(1000), true).into_response().status(), StatusCode::OK);
}
