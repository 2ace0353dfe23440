//! Whose directory it is, and what is said when it is not ours.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

use super::*;

fn refused_to_open(path: &Path) -> (StoreErrorKind, String) {
    let error = FileStore::open(path).expect_err("a store");
    (error.kind(), error.to_string())
}

#[test]
fn a_directory_of_somebody_else_is_refused_and_left_alone() {
    let place = Place::new();
    fs::create_dir(place.path()).unwrap();
    fs::write(place.path().join("thesis.tex"), "mine").unwrap();
    let (kind, message) = refused_to_open(&place.path());
    assert_eq!(kind, StoreErrorKind::Misconfigured);
    assert!(message.contains("thesis.tex") && message.contains("empty"), "{message}");
    assert_eq!(tree(&place.path()), [place.path().join("thesis.tex")]);
}

#[test]
fn a_mark_that_is_not_ours_is_told_apart() {
    use StoreErrorKind::{Corrupt, Misconfigured};
    for (mark, wanted, says) in [
        ("{\"format\":\"onlyonce-file\",\"version\":2}", Misconfigured, "format 2"),
        ("{\"format\":\"onlyonce-file\",\"version\":1000,\"more\":[]}", Misconfigured, "newer"),
        ("{\"format\":\"other\",\"version\":1}", Misconfigured, "another program"),
        ("{\"format\":\"onlyonce-file\"}", Corrupt, "version"),
        ("", Corrupt, "store.json"),
        ("[]", Corrupt, "store.json"),
    ] {
        let place = Place::new();
        fs::create_dir(place.path()).unwrap();
        fs::write(place.path().join("store.json"), mark).unwrap();
        let (kind, message) = refused_to_open(&place.path());
        assert_eq!(kind, wanted, "{mark}: {message}");
        assert!(message.contains(says), "{mark}: {message}");
        assert_eq!(fs::read_to_string(place.path().join("store.json")).unwrap(), mark);
    }
}

#[test]
fn a_place_where_no_directory_can_be_is_refused() {
    let place = Place::new();
    fs::write(place.path(), "mine").unwrap();
    let path = place.path();
    for (path, says) in [
        (path.clone(), format!("{} is a file", path.display())),
        (path.join("below"), format!("no directory {}", path.display())),
        (path.join("a/b"), format!("no directory {}", path.join("a").display())),
    ] {
        let (kind, message) = refused_to_open(&path);
        assert_eq!(kind, StoreErrorKind::Misconfigured, "{message}");
        assert!(message.contains(&says), "{message}");
    }
    assert_eq!(fs::read(path).unwrap(), b"mine");
}

#[test]
fn an_empty_directory_is_begun_by_one_of_many() {
    let place = Place::new();
    let path = place.path();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| FileStore::open(&path).unwrap());
        }
    });
    assert_eq!(tree(&path), [path.join("store.json")]);
}

#[test]
fn a_beginning_that_was_cut_off_is_begun_again() {
    let place = Place::new();
    fs::create_dir(place.path()).unwrap();
    fs::write(place.path().join("store.json.temp"), "{\"form").unwrap();
    place.open();
    assert_eq!(tree(&place.path()), [place.path().join("store.json")]);
}

#[tokio::test]
async fn a_directory_that_vanishes_is_an_error_and_no_panic() {
    let place = Place::new();
    let store = place.open();
    stored(&store, create(&key("a"), "1")).await;
    fs::remove_dir_all(place.path()).unwrap();
    let (kind, message) = refused(&store, create(&key("b"), "1")).await;
    assert_eq!(kind, StoreErrorKind::Unavailable, "{message}");
    assert!(message.contains(&place.path().display().to_string()), "{message}");
}

/// Root may write everywhere, so as root this test runs itself again as nobody.
#[tokio::test]
async fn a_directory_one_may_not_write_to_is_told_so() {
    const PATH: &str = "ONLYONCE_TEST_UNWRITABLE";
    if let Some(path) = std::env::var_os(PATH) {
        return is_told_so(Path::new(&path)).await;
    }
    let place = Place::new();
    let store = place.open();
    stored(&store, create(&key("a"), "1")).await;
    let paths = tree(&place.path());
    for path in paths.iter().chain([&place.path()]) {
        let mode = if path.is_dir() { 0o555 } else { 0o444 };
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }
    if fs::write(place.path().join("probe"), "").is_err() {
        return is_told_so(&place.path()).await;
    }
    fs::remove_file(place.path().join("probe")).unwrap();
    fs::set_permissions(place.above.path(), fs::Permissions::from_mode(0o755)).unwrap();
    // A copy, as nobody may not be let into the directory this program is in.
    let program = place.above.path().join("program");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let mut again = Command::new(program);
    again.args(["--exact", "file::opening::a_directory_one_may_not_write_to_is_told_so"]);
    let ran = again.env(PATH, place.path()).current_dir("/").uid(65534).gid(65534).output().unwrap();
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success() && said.contains("1 passed"), "{said}");
}

async fn is_told_so(path: &Path) {
    let store = FileStore::open(path).unwrap();
    assert_eq!(read(&store, &key("a")).await.unwrap().unwrap().body, "1");
    for id in ["a", "b", "c"] {
        let (kind, message) = refused(&store, create(&key(id), "1")).await;
        assert_eq!(kind, StoreErrorKind::Misconfigured, "{message}");
        assert!(
            message.contains(&path.display().to_string()) && message.contains("must belong"),
            "{message}"
        );
    }
    let (kind, message) = refused_to_open(&path.join("new"));
    assert_eq!(kind, StoreErrorKind::Misconfigured, "{message}");
}
