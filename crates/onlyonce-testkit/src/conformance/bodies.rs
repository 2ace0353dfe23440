//! Bodies come back byte for byte.

use bytes::Bytes;
use onlyonce::store::{HeaderDraft, StoreErrorKind};

use super::failure::ensure_eq;
use super::verbs::{OTHER, create, due, plain, replace, touch};
use super::{Failure, Room, Verdict};

/// JSON that a store which reads and writes it again would change.
const ODD: &[&str] = &[
    "null",
    "true",
    "false",
    "0",
    "-0",
    "1",
    "1.0",
    "1e0",
    "1E+2",
    "0.1",
    "9007199254740993",
    "18446744073709551616",
    "-9223372036854775809",
    "123456789012345678901234567890.123456789012345678901234567890",
    "1e400",
    "5e-324",
    r#""""#,
    r#"" ""#,
    r#""text""#,
    r#""\u0000""#,
    r#""\u0001\b\f\n\r\t\/\\\"""#,
    r#""\u00e9 and é and e\u0301""#,
    r#""\ud83d\ude00 and 😀""#,
    r#""\ud800""#,
    r#""</script><!-- & ' ; -- $1 %s {{}} ""#,
    "[]",
    "{}",
    "[[],{},[[]]]",
    "[ ]",
    " {} ",
    "\t[\r\n1 ,\n2\t]\n",
    r#"{"b":1,"a":2}"#,
    r#"{"a":1,"a":2}"#,
    r#"{ "a" : 1 }"#,
    r#"{"":""}"#,
    r#"{"version":1,"header":{"status":"x"},"body":null,"__proto__":[]}"#,
    "{\"\u{2028}\u{2029}\":\"\u{feff}\"}",
];

fn ensure_body(found: &Bytes, wanted: &[u8], how: &str) -> Verdict {
    if found == wanted {
        return Ok(());
    }
    let (found, wanted) = (String::from_utf8_lossy(found), String::from_utf8_lossy(wanted));
    Err(Failure::new(format!("by {how}, the body {wanted:?} came back as {found:?}")))
}

pub(super) async fn bodies_come_back_byte_for_byte(room: &Room) -> Verdict {
    for (n, body) in ODD.iter().enumerate() {
        let key = room.key(format!("{n}"))?;
        let version = room.store_one(create(&key, due(), *body)).await?;
        let bytes = body.as_bytes();
        ensure_body(&room.there(&key).await?.body, bytes, "read")?;
        let told = room.conflict_one(create(&key, plain(), "\"other\"")).await?;
        ensure_body(&told.map(|e| e.body).unwrap_or_default(), bytes, "conflict")?;
        let scanned = room.walk(room.scan_home(10)).await?;
        ensure_body(&scanned.into_iter().map(|e| e.body).collect::<Vec<_>>().concat().into(), bytes, "scan")?;
        let taken = room.take(1).await?;
        ensure_body(&taken.iter().map(|e| &e.body[..]).collect::<Vec<_>>().concat().into(), bytes, "take")?;
        ensure_body(&room.there(&key).await?.body, bytes, "read after a take")?;
        let seen = taken.first().map_or(version, |e| e.version);
        room.store_one(super::verbs::delete(&key, seen)).await?;
    }
    Ok(())
}

pub(super) async fn a_touch_leaves_the_body_as_it_is(room: &Room) -> Verdict {
    for (n, body) in ODD.iter().enumerate() {
        let key = room.key(format!("{n}"))?;
        let mut version = room.store_one(create(&key, plain(), *body)).await?;
        for header in [plain(), due(), HeaderDraft::new(OTHER)] {
            version = room.store_one(touch(&key, version, header)).await?;
            ensure_body(&room.there(&key).await?.body, body.as_bytes(), "touch")?;
        }
    }
    Ok(())
}

pub(super) async fn a_put_replaces_the_whole_body(room: &Room) -> Verdict {
    let key = room.key("a")?;
    let mut version = room.store_one(create(&key, plain(), r#"{"a":1,"b":{"c":[1,2,3]}}"#)).await?;
    for body in [r#"{"b":{}}"#, "[]", r#""longer than what was there before""#, "0", r#"{"a":null}"#] {
        version = room.store_one(replace(&key, version, plain(), body)).await?;
        ensure_body(&room.there(&key).await?.body, body.as_bytes(), "put")?;
    }
    Ok(())
}

/// A JSON string of so many bytes, with something in it that compresses badly and escapes badly.
fn long_body(len: usize) -> Bytes {
    let mut body = String::with_capacity(len);
    body.push('"');
    let mut n = 0_u64;
    while body.len() + 24 < len {
        body.push_str(&format!("{:x}\\\\é", onlyonce::chance::mix(n)));
        n += 1;
    }
    body.push_str(&"x".repeat(len.saturating_sub(body.len() + 1)));
    body.push('"');
    body.into()
}

pub(super) async fn a_body_of_100_kib_comes_back(room: &Room) -> Verdict {
    let most = room.facts().max_body;
    let key = room.key("a")?;
    let body = long_body(most.min(100 * 1024));
    let version = room.store_one(create(&key, plain(), body.clone())).await?;
    ensure_same_long(&room.there(&key).await?.body, &body)?;
    room.store_one(touch(&key, version, plain())).await?;
    ensure_same_long(&room.there(&key).await?.body, &body)
}

fn ensure_same_long(found: &Bytes, wanted: &Bytes) -> Verdict {
    ensure_eq!(found.len(), wanted.len(), "the length of a long body");
    let first = found.iter().zip(wanted).position(|(a, b)| a != b);
    ensure_eq!(first, None, "where a long body differs first");
    Ok(())
}

pub(super) async fn a_body_of_the_very_limit_comes_back(room: &Room) -> Verdict {
    let key = room.key("a")?;
    let body = long_body(room.facts().max_body);
    room.store_one(create(&key, plain(), body.clone())).await?;
    ensure_same_long(&room.there(&key).await?.body, &body)
}

pub(super) async fn a_body_over_the_limit_is_refused_and_the_old_one_stays(room: &Room) -> Verdict {
    let most = room.facts().max_body;
    let (key, new) = (room.key("a")?, room.key("new")?);
    let version = room.store_one(create(&key, plain(), r#""old""#)).await?;
    let was = room.there(&key).await?;
    let large = long_body(most + 1);
    ensure_eq!(large.len(), most + 1, "the length of the body this case made");
    let over = vec![replace(&key, version, plain(), large.clone())];
    room.refused(over, StoreErrorKind::TooLarge).await?;
    room.refused(vec![create(&new, plain(), large)], StoreErrorKind::TooLarge).await?;
    room.unchanged(&was).await?;
    room.absent(&new).await
}
