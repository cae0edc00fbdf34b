use std::fs::{self, read_to_string};
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use super::LogFile;

/// A directory of its own for each test.
fn directory(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("ovnkube-log-file-{}-{name}", std::process::id()));
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    path
}

fn names(directory: &PathBuf) -> Vec<String> {
    let mut names: Vec<_> =
        fs::read_dir(directory).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_full_file_is_rotated_and_old_ones_removed() {
    let directory = directory("rotate");
    let path = directory.join("ovnkube.log");
    fs::write(directory.join("ovnkube-notes.log"), "of another program").unwrap();
    let mut log = LogFile::with(path.clone(), 100, 2, None).unwrap();
    for number in 0..50 {
        log.write_all(format!("line {number:04} {:30}\n", "").as_bytes()).unwrap();
    }
    let names = names(&directory);
    assert_eq!(names.len(), 4, "{names:?}");
    assert!(names.contains(&"ovnkube-notes.log".to_owned()), "{names:?}");
    let mut newest = String::new();
    for name in names.iter().filter(|n| *n != "ovnkube-notes.log") {
        let text = read_to_string(directory.join(name)).unwrap();
        assert!(text.len() <= 100 && text.lines().all(|l| l.len() == 40), "{name}: {text}");
        newest += &text;
    }
    // sorted by name the backups come in order, the file itself last: nothing is lost in between
    let numbers: Vec<u32> = newest.lines().map(|l| l[5..9].parse().unwrap()).collect();
    assert_eq!(numbers, (50 - numbers.len() as u32..50).collect::<Vec<_>>());
    fs::remove_dir_all(directory).unwrap();
}

#[test]
fn files_too_old_are_removed_and_a_found_log_is_continued() {
    let directory = directory("age");
    let path = directory.join("ovnkube.log");
    let (old, young) = ("ovnkube-2020-01-02T03-04-05.678.log", "ovnkube-2999-01-02T03-04-05.678.log");
    for name in [old, young] {
        fs::write(directory.join(name), "x").unwrap();
    }
    fs::write(&path, "found\n").unwrap();
    let mut log = LogFile::with(path.clone(), 10, 0, Some(Duration::from_secs(60))).unwrap();
    log.write_all(b"abc\n").unwrap();
    assert_eq!(read_to_string(&path).unwrap(), "found\nabc\n");
    log.write_all(b"next\n").unwrap();
    assert_eq!(read_to_string(&path).unwrap(), "next\n");
    let names = names(&directory);
    assert!(!names.contains(&old.to_owned()), "{names:?}");
    assert_eq!(names.len(), 3, "{names:?}");
    fs::remove_dir_all(directory).unwrap();
}

/// A clock that was far ahead was set right, and the process started again.
#[test]
fn files_with_names_of_the_future_go_before_those_that_are_put_aside_now() {
    let directory = directory("future");
    let path = directory.join("a.log");
    for year in [2997, 2998, 2999] {
        fs::write(directory.join(format!("a-{year}-01-02T03-04-05.678.log")), "of the future\n").unwrap();
    }
    let mut log = LogFile::with(path.clone(), 5, 2, None).unwrap();
    let texts = || {
        let mut texts: Vec<_> =
            names(&directory).iter().map(|name| read_to_string(directory.join(name)).unwrap()).collect();
        texts.sort();
        texts
    };
    log.write_all(b"first\n").unwrap();
    log.write_all(b"second\n").unwrap();
    assert_eq!(texts(), ["first\n", "of the future\n", "second\n"]);
    log.write_all(b"third\n").unwrap();
    assert_eq!(texts(), ["first\n", "second\n", "third\n"]);
    log.write_all(b"fourth\n").unwrap();
    assert_eq!(texts(), ["fourth\n", "second\n", "third\n"]);
    fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn a_full_file_is_rotated_once_by_all_writers() {
    let directory = directory("shared");
    let path = directory.join("a.log");
    fs::write(&path, format!("{:195}\n", "full")).unwrap();
    let mut all = [0; 4].map(|_| LogFile::with(path.clone(), 200, 1, None).unwrap());
    for log in &mut all {
        log.write_all(b"a line\n").unwrap();
    }
    assert_eq!(read_to_string(&path).unwrap(), "a line\n".repeat(4));
    assert_eq!(names(&directory).len(), 2);
    // also by those who have room for more themselves
    let mut other = LogFile::with(path.clone(), 200, 1, None).unwrap();
    fs::rename(&path, directory.join("aside")).unwrap();
    other.write_all(b"later\n").unwrap();
    assert_eq!(read_to_string(&path).unwrap(), "later\n");
    fs::remove_dir_all(directory).unwrap();
}

#[test]
fn many_writers_at_once_lose_no_line() {
    let directory = directory("many");
    let path = directory.join("a.log");
    let writers: Vec<_> = (0..8)
        .map(|writer| {
            let path = path.clone();
            std::thread::spawn(move || {
                for number in 0..200 {
                    let mut log = LogFile::with(path.clone(), 2000, 0, None).unwrap();
                    log.write_all(format!("{writer} {number:4}\n").as_bytes()).unwrap();
                }
            })
        })
        .collect();
    for writer in writers {
        writer.join().unwrap();
    }
    let all: String = names(&directory).iter().map(|name| read_to_string(directory.join(name)).unwrap()).collect();
    assert_eq!(all.lines().count(), 8 * 200);
    fs::remove_dir_all(directory).unwrap();
}

#[test]
fn log_comes_back_after_its_directory_was_away() {
    let directory = directory("away");
    let inner = directory.join("inner");
    fs::create_dir(&inner).unwrap();
    let mut log = LogFile::with(inner.join("a.log"), 5, 1, None).unwrap();
    log.write_all(b"12345\n").unwrap();
    fs::remove_dir_all(&inner).unwrap();
    assert!(log.write_all(b"lost\n").is_err());
    fs::create_dir(&inner).unwrap();
    log.write_all(b"back\n").unwrap();
    assert_eq!(read_to_string(inner.join("a.log")).unwrap(), "back\n");
    fs::remove_dir_all(directory).unwrap();
}

#[cfg(unix)]
#[test]
fn through_a_link_the_log_itself_is_rotated() {
    use std::os::unix::fs::symlink;
    let directory = directory("link");
    let (link, disk) = (directory.join("a.log"), directory.join("disk"));
    fs::create_dir(&disk).unwrap();
    symlink(disk.join("b.log"), &link).unwrap();
    let mut log = LogFile::with(link.clone(), 10, 1, None).unwrap();
    for line in ["first\n", "second\n", "third\n"] {
        log.write_all(line.as_bytes()).unwrap();
    }
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(read_to_string(&link).unwrap(), "third\n");
    assert_eq!(names(&disk).len(), 2, "{:?}", names(&disk));
    fs::remove_dir_all(directory).unwrap();
}
