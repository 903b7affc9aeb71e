//! Access lists of files, taken apart and put together again. Pure.
//!
//! A process in a container gets at a file by entries that *allow* its SID something: in the system's second check,
//! the one for containers, allowing entries are added up and denying ones for a container's SID do not
//! count. So nothing is closed by an entry here, but by there being none.

/// What an entry does.
const ALLOWED: u8 = 0;
const DENIED: u8 = 1;

/// Onto files and directories that are made below.
pub const BELOW: u8 = 0x3;
/// Not for the object itself.
pub const BELOW_ONLY: u8 = 0x8;
/// Came from above.
pub const INHERITED: u8 = 0x10;

/// The largest list that there can be.
const LARGEST: usize = 0xffff;

/// A file's security descriptor, as far as it is about access.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Descriptor {
    control: u16,
    /// Without one everything is open to everybody.
    pub list: Option<List>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct List {
    revision: u8,
    entries: Vec<Entry>,
}

/// Of any kind; the body is kept as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    kind: u8,
    pub flags: u8,
    body: Vec<u8>,
}

fn bytes<const N: usize>(from: &[u8], at: usize) -> Option<[u8; N]> {
    from.get(at..at.checked_add(N)?)?.try_into().ok()
}

fn short(from: &[u8], at: usize) -> Option<usize> {
    bytes(from, at).map(|two| u16::from_le_bytes(two).into())
}

fn long(from: &[u8], at: usize) -> Option<u32> {
    bytes(from, at).map(u32::from_le_bytes)
}

impl Descriptor {
    const DACL_PRESENT: u16 = 0x4;
    const AUTO_INHERIT_REQUIRED: u16 = 0x100;
    const AUTO_INHERITED: u16 = 0x400;
    const PROTECTED: u16 = 0x1000;
    const SELF_RELATIVE: u16 = 0x8000;
    const HEADER: usize = 20;

    /// As the system tells it, with offsets into itself.
    pub fn parse(from: &[u8]) -> Option<Descriptor> {
        let control = u16::from_le_bytes(bytes(from, 2)?);
        let at = usize::try_from(long(from, 16)?).ok()?;
        let is_there = control & Self::DACL_PRESENT != 0 && at != 0;
        let list = match is_there {
            true => Some(List::parse(from.get(at..)?)?),
            false => None,
        };
        Some(Descriptor { control, list })
    }

    /// To be set: this list, inherited and protected as it was.
    pub fn bytes_with(&self, list: &List) -> Option<Vec<u8>> {
        let mut control = self.control & (Self::AUTO_INHERITED | Self::PROTECTED);
        control |= Self::SELF_RELATIVE | Self::DACL_PRESENT;
        if control & Self::AUTO_INHERITED != 0 {
            // Else what is inherited would not stay marked so.
            control |= Self::AUTO_INHERIT_REQUIRED;
        }
        let mut all = vec![1, 0];
        all.extend(control.to_le_bytes());
        all.extend([0; 12]);
        all.extend((Self::HEADER as u32).to_le_bytes());
        all.extend(list.bytes()?);
        Some(all)
    }
}

impl List {
    const HEADER: usize = 8;

    fn parse(from: &[u8]) -> Option<List> {
        let revision = *from.first()?;
        let from = from.get(..short(from, 2)?)?;
        let count = short(from, 4)?;
        let mut entries = Vec::new();
        let mut at = Self::HEADER;
        for _ in 0..count {
            let size = short(from, at + 2)?;
            let whole = from.get(at..at.checked_add(size)?)?;
            let body = whole.get(4..)?.to_vec();
            entries.push(Entry { kind: *whole.first()?, flags: *whole.get(1)?, body });
            at += size;
        }
        Some(List { revision, entries })
    }

    /// `None` where it is larger than a list can be.
    pub fn bytes(&self) -> Option<Vec<u8>> {
        let mut all = vec![self.revision, 0, 0, 0, 0, 0, 0, 0];
        for entry in &self.entries {
            all.extend([entry.kind, entry.flags]);
            all.extend(u16::try_from(entry.body.len() + 4).ok()?.to_le_bytes());
            all.extend(&entry.body);
        }
        if all.len() > LARGEST {
            return None;
        }
        let size = u16::try_from(all.len()).ok()?.to_le_bytes();
        let count = u16::try_from(self.entries.len()).ok()?.to_le_bytes();
        all.splice(2..6, size.into_iter().chain(count));
        Some(all)
    }

    /// With entries that let a SID in, in the order that is expected: what was put here before what came from
    /// above.
    pub fn with(&self, added: &[Entry]) -> List {
        let mut entries = self.entries.clone();
        for entry in added {
            let first_inherited = entries.iter().position(|entry| entry.flags & INHERITED != 0);
            let at = match entry.flags & INHERITED {
                0 => first_inherited.unwrap_or(entries.len()),
                _ => entries.len(),
            };
            entries.insert(at, entry.clone());
        }
        List { revision: self.revision, entries }
    }

    /// Without any entry of a SID, wherever it came from.
    pub fn without(&self, sid: &[u8]) -> List {
        let entries = self.entries.iter().filter(|entry| entry.holder() != Some(sid));
        List { revision: self.revision, entries: entries.cloned().collect() }
    }

    pub fn names(&self, sid: &[u8]) -> bool {
        self.entries.iter().any(|entry| entry.holder() == Some(sid))
    }

    /// Whether an entry of a SID goes to what is made below.
    pub fn reaches_below(&self, sid: &[u8]) -> bool {
        self.entries.iter().any(|entry| entry.holder() == Some(sid) && entry.flags & BELOW != 0)
    }

    /// What the object itself lets a SID do, and does not deny it.
    pub fn gives(&self, sid: &[u8]) -> u32 {
        let of = |kind: u8| {
            let applies = move |entry: &&Entry| {
                entry.kind == kind && entry.flags & BELOW_ONLY == 0 && entry.holder() == Some(sid)
            };
            self.entries
                .iter()
                .filter(applies)
                .filter_map(Entry::mask)
                .fold(0, |all, mask| all | mask)
        };
        of(ALLOWED) & !of(DENIED)
    }
}

impl Entry {
    pub fn allow(sid: &[u8], mask: u32, flags: u8) -> Entry {
        let body = mask.to_le_bytes().into_iter().chain(sid.iter().copied()).collect();
        Entry { kind: ALLOWED, flags, body }
    }

    fn is_plain(&self) -> bool {
        self.kind == ALLOWED || self.kind == DENIED
    }

    fn mask(&self) -> Option<u32> {
        long(&self.body, 0).filter(|_| self.is_plain())
    }

    /// Whom it is about, where it is of a kind that we know.
    fn holder(&self) -> Option<&[u8]> {
        let parts = usize::from(*self.body.get(5)?);
        self.body.get(4..4 + 8 + 4 * parts).filter(|_| self.is_plain())
    }
}

/// A SID as lists have it, from its usual spelling.
pub fn sid(text: &str) -> Option<Vec<u8>> {
    let mut parts = text.strip_prefix("S-1-")?.split('-');
    let authority: u64 = parts.next()?.parse().ok()?;
    let parts: Vec<u32> = parts.map(|part| part.parse().ok()).collect::<Option<_>>()?;
    let count = u8::try_from(parts.len()).ok().filter(|count| *count <= 15)?;
    let mut sid = vec![1, count];
    sid.extend(authority.to_be_bytes().get(2..)?);
    parts.iter().for_each(|part| sid.extend(part.to_le_bytes()));
    Some(sid)
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;

    pub fn empty() -> List {
        List { revision: 2, entries: Vec::new() }
    }

    fn someone() -> Vec<u8> {
        sid("S-1-5-21-1-2-3-1001").unwrap()
    }

    fn ours() -> Vec<u8> {
        sid("S-1-15-2-1-2-3-4-5-6-7").unwrap()
    }

    #[test]
    fn a_sid_is_spelt_as_lists_have_it() {
        assert_eq!(
            sid("S-1-5-32-544").unwrap(),
            [1, 2, 0, 0, 0, 0, 0, 5, 32, 0, 0, 0, 32, 2, 0, 0]
        );
        for odd in ["", "S-1", "S-1-", "S-1-x", "S-2-5", "S-1-5-99999999999"] {
            assert_eq!(sid(odd), None, "{odd}");
        }
    }

    #[test]
    fn entries_stand_where_they_belong() {
        let denied = Entry { kind: DENIED, ..Entry::allow(&someone(), 1, 0) };
        let above = Entry::allow(&someone(), 2, INHERITED);
        let list = empty().with(&[denied, above]);
        let list =
            list.with(&[Entry::allow(&ours(), 4, BELOW), Entry::allow(&ours(), 8, INHERITED)]);
        let order: Vec<u8> = list.entries.iter().map(|entry| entry.flags & INHERITED).collect();
        assert_eq!(order, [0, 0, INHERITED, INHERITED]);
        assert_eq!(list.entries[0].kind, DENIED, "what denies stays first");
        assert_eq!(list.gives(&ours()), 12);
        assert!(list.reaches_below(&ours()) && !list.reaches_below(&someone()));
    }

    #[test]
    fn what_is_for_below_only_gives_nothing_here() {
        let list = empty().with(&[Entry::allow(&ours(), 0xff, BELOW | BELOW_ONLY)]);
        assert_eq!(list.gives(&ours()), 0);
        assert!(list.names(&ours()));
        assert!(!list.without(&ours()).names(&ours()));
    }

    fn any_list() -> impl Strategy<Value = List> {
        let body = prop::collection::vec(any::<u8>(), 0..6)
            .prop_map(|words| words.into_iter().flat_map(|word| [word; 4]).collect::<Vec<u8>>());
        let entry = (any::<u8>(), any::<u8>(), body).prop_map(|(kind, flags, body)| Entry {
            kind,
            flags,
            body,
        });
        prop::collection::vec(entry, 0..8).prop_map(|entries| List { revision: 2, entries })
    }

    proptest! {
        #[test]
        fn what_was_written_is_read(list in any_list(), control in any::<u16>()) {
            let before = Descriptor { control, list: None };
            let read = Descriptor::parse(&before.bytes_with(&list).unwrap()).unwrap();
            prop_assert_eq!(read.list, Some(list));
            let kept = Descriptor::PROTECTED | Descriptor::AUTO_INHERITED;
            prop_assert_eq!(read.control & kept, control & kept);
        }

        /// Putting entries in and taking them out changes nothing for anybody else.
        #[test]
        fn out_again_is_as_before(list in any_list(), mask in any::<u32>(), flags in any::<u8>()) {
            let list = list.without(&ours());
            let longer = list.with(&[Entry::allow(&ours(), mask, flags)]);
            prop_assert!(longer.names(&ours()));
            prop_assert_eq!(longer.gives(&someone()), list.gives(&someone()));
            prop_assert_eq!(longer.without(&ours()), list);
        }

        #[test]
        fn no_bytes_are_too_odd(from in prop::collection::vec(any::<u8>(), 0..64)) {
            let _ = Descriptor::parse(&from);
        }
    }
}
