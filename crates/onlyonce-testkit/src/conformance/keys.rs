//! Keys are data: no key can escape its namespace, directory, table or script.

use std::collections::BTreeMap;

use onlyonce::Key;
use onlyonce::key::MAX_ID;
use onlyonce::store::{Scan, TakeDue};

use super::failure::ensure_eq;
use super::verbs::{HOUR, PLAIN, create, delete, due, holder, plain, touch};
use super::{Room, Verdict};

/// Ids that mean something to a shell, a file system, a database or a protocol.
#[rustfmt::skip]
const ODD: &[&str] = &[
    " ", "  ", ".", "..", "...", "../..", "../../etc/passwd", "/", "//", "/etc/passwd", "a/b", "a//b",
    "a/", "/a", "\\", "..\\..", "C:\\x", "~", "~root", "-rf", "--help", "*", "?", "[a-z]", "{a,b}",
    "$HOME", "$(id)", "`id`", "|", "&", ";", "'", "\"", "''", "\\'", "' OR '1'='1",
    "'; DROP TABLE entries; --", "\"; DELETE FROM entries; --", "%", "%%", "%s", "%00", "%2e%2e%2f",
    "_", "a_b", "a%b", "a.b", "a:b", "a::b", "a#b", "a@b", "a=b", "a,b", "a+b", "a\u{a0}b", "\\0",
    "\\x00", "\\u0000", "$1", "$$", "?1", ":name", "@name", "{}", "{0}", "${jndi:ldap://x}",
    "{\"a\":1}", "[1]", "null", "true", "0", "00", "1e3", "NaN", "KEYS[1]", "redis.call('FLUSHALL')",
    "*3$3SET", "]]--", "return 1", "__proto__", "__name__", "__a__", "constructor", "CON", "nul.txt",
    "a.tmp", ".lock", "<script>", "&amp;", "--", "/*", "*/", "é", "ü", "日本語", "العربية", "😀", "👨‍👩‍👧",
    "\u{200b}", "\u{feff}", "\u{202e}abc", "\u{10ffff}", "\u{e000}",
];

/// Those, and ids as long as can be.
fn odd_ids() -> Vec<String> {
    let mut ids: Vec<_> = ODD.iter().map(ToString::to_string).collect();
    for (text, len) in [("x", 1), ("/", 1), ("'", 1), ("%", 1), ("..", 2), ("é", 2), ("😀", 4)] {
        ids.push(text.repeat(MAX_ID / len));
    }
    ids.push("x".repeat(254));
    ids.push("x".repeat(255));
    ids.push("x".repeat(256));
    ids.push(format!("{}y", "x".repeat(MAX_ID - 1)));
    ids
}

/// Pairs that a store folding case, spaces or characters would take for one.
#[rustfmt::skip]
const ALIKE: &[&str] = &[
    "a", "A", "a ", " a", "a  ", "a.", "a/", "a//", "a\u{a0}", "\u{ff41}", "\u{e1}", "a\u{301}",
    "\u{c1}", "A\u{301}", "\u{df}", "ss", "SS", "\u{17f}", "s", "S", "i", "I", "\u{131}", "\u{130}",
    "i\u{307}", "\u{fb01}", "fi", "\u{c5}", "A\u{30a}", "K", "k", "\u{3a9}", "\u{3c9}", "1", "01",
    "1.0", "\u{661}", "+1", "-0", "0", "\u{200d}", "\u{200c}", "a\u{200d}", "\u{e9}", "e\u{301}", "a\\",
    "a\\\\", "a%20", "a+", "\u{212b}", "\u{212a}", "\u{2126}",
];

/// Each key with a body of its own.
async fn fill(room: &Room, keys: &[Key]) -> Verdict<BTreeMap<Key, String>> {
    let mut bodies = BTreeMap::new();
    for (n, key) in keys.iter().enumerate() {
        let body = format!("{{\"n\":{n}}}");
        room.store_one(create(key, plain(), body.clone())).await.map_err(|f| f.at(format!("{key:?}")))?;
        bodies.insert(key.clone(), body);
    }
    ensure_eq!(bodies.len(), keys.len(), "how many different keys this case made");
    Ok(bodies)
}

/// Each key gives its own body by a read, and a walk over its namespace gives exactly these keys.
async fn ensure_apart(room: &Room, wanted: &BTreeMap<Key, String>) -> Verdict {
    for (key, body) in wanted {
        let there = room.there(key).await?;
        ensure_eq!(&there.body[..], body.as_bytes(), "what is under {key:?}");
    }
    let mut namespaces: Vec<_> = wanted.keys().map(|k| k.namespace().to_owned()).collect();
    namespaces.dedup();
    for namespace in namespaces {
        let scan = Scan { namespace: Some(namespace.clone()), limit: 50, ..Scan::default() };
        let mut found: Vec<_> = room.walk(scan).await?.into_iter().map(|e| e.key).collect();
        found.sort();
        let mine: Vec<_> = wanted.keys().filter(|k| k.namespace() == namespace).cloned().collect();
        ensure_eq!(found, mine, "what a walk over {namespace} finds");
    }
    Ok(())
}

/// Touching and deleting every second key leaves the others alone.
async fn ensure_independent(room: &Room, mut wanted: BTreeMap<Key, String>) -> Verdict {
    let halves: Vec<_> = wanted.keys().cloned().enumerate().collect();
    for (n, key) in halves {
        let version = room.there(&key).await?.version;
        let touched = room.store_one(touch(&key, version, plain())).await?;
        if n % 2 == 0 {
            room.store_one(delete(&key, touched)).await?;
            room.absent(&key).await?;
            wanted.remove(&key);
        }
    }
    ensure_apart(room, &wanted).await
}

pub(super) async fn any_id_is_only_an_id(room: &Room) -> Verdict {
    let keys = odd_ids().into_iter().map(|id| room.key(id)).collect::<Verdict<Vec<_>>>()?;
    let wanted = fill(room, &keys).await?;
    ensure_apart(room, &wanted).await?;
    ensure_independent(room, wanted).await
}

pub(super) async fn ids_that_look_alike_stay_apart(room: &Room) -> Verdict {
    let keys = ALIKE.iter().map(|id| room.key(id)).collect::<Verdict<Vec<_>>>()?;
    let wanted = fill(room, &keys).await?;
    ensure_apart(room, &wanted).await?;
    ensure_independent(room, wanted).await
}

/// Namespaces that a prefix match, a pattern or a folded case would take for one another.
#[rustfmt::skip]
const NAMESPACES: &[&str] = &[
    "a", "a.b", "a~b", "a:b", "a-b", "a_b", "axb", "a%b", "a*b", "a?b", "A", "A.b", "aa", "a.", "a..",
    "a..b", "~", "~~", "a~", "*", "?", "%", "_", "[a]", "{a}", "$a", "'a'", "\"a\"", "a;b", "a\\b",
    "a'", "a|b", "a#b", "a@b", "a&b", "a=b", "a+b", "a,b", "(a)", "<a>", "a!", "a^", "`a`",
];

pub(super) async fn namespaces_that_begin_alike_stay_apart(room: &Room) -> Verdict {
    let keys = NAMESPACES.iter().map(|name| room.key_in(name, "same")).collect::<Verdict<Vec<_>>>()?;
    let wanted = fill(room, &keys).await?;
    ensure_apart(room, &wanted).await?;
    ensure_independent(room, wanted).await
}

/// `a:b` + `c` and `a` + `b:c` are one text with many separators, and never one key.
pub(super) async fn no_separator_lets_an_id_leave_its_namespace(room: &Room) -> Verdict {
    let mut keys = Vec::new();
    for separator in [":", ".", "~", "|", "#", "@", "%", "_", "-", "\\", "!", "::", "..", "%2F", "\\0"] {
        keys.push(room.key_in(&format!("n{separator}b"), "c")?);
        keys.push(room.key_in("n", format!("b{separator}c"))?);
        keys.push(room.key_in("n", format!("{separator}b"))?);
        keys.push(room.key_in(&format!("n{separator}"), "b")?);
    }
    keys.push(room.key_in("n", "b/c")?);
    keys.push(room.key_in("n", "/c")?);
    keys.sort();
    keys.dedup();
    let wanted = fill(room, &keys).await?;
    ensure_apart(room, &wanted).await?;
    ensure_independent(room, wanted).await
}

/// A namespace fills 100 bytes; the last ones are left to whoever puts a prefix before it.
pub(super) async fn long_namespaces_work(room: &Room) -> Verdict {
    let room_left = 100 - room.namespace("").len();
    let mut names = ["x", "%", "~", "\\", "A"].map(|c| c.repeat(room_left)).to_vec();
    names.extend([format!("{}y", &names[0][1..]), names[0][1..].to_owned()]);
    let keys = names.iter().map(|name| room.key_in(name, "x".repeat(MAX_ID))).collect::<Verdict<Vec<_>>>()?;
    let wanted = fill(room, &keys).await?;
    ensure_apart(room, &wanted).await
}

pub(super) async fn a_take_in_one_namespace_leaves_the_others_alone(room: &Room) -> Verdict {
    for name in NAMESPACES {
        room.store_one(create(&room.key_in(name, "same")?, due(), "1")).await?;
    }
    for name in NAMESPACES {
        let namespace = room.namespace(name);
        let take = TakeDue {
            namespace: namespace.clone(),
            statuses: vec![PLAIN],
            holder: holder("t#1"),
            lease: HOUR,
            limit: 100,
        };
        let taken: Vec<_> = room.store().take_due(take).await?.into_iter().map(|e| e.key).collect();
        ensure_eq!(taken, [room.key_in(name, "same")?], "what a take in {namespace} got");
    }
    Ok(())
}
