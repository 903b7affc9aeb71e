//! Reads and writes the DACL (discretionary access control list) of a file's security descriptor. Pure.
//!
//! Windows checks the access of an AppContainer twice. The second check adds up the entries that *allow* the
//! container's SID something; it does not read entries that deny it. So this program denies a container a file by
//! leaving its SID out of the file's DACL, never by an ACCESS_DENIED entry.

use crate::windows::win32::{
    ACCESS_ALLOWED_ACE_TYPE, ACCESS_DENIED_ACE_TYPE, CONTAINER_INHERIT_ACE, OBJECT_INHERIT_ACE,
    SE_DACL_AUTO_INHERIT_REQ, SE_DACL_AUTO_INHERITED, SE_DACL_PRESENT, SE_DACL_PROTECTED,
    SE_SACL_PRESENT, SE_SELF_RELATIVE, SYSTEM_MANDATORY_LABEL_ACE_TYPE,
};
pub use crate::windows::win32::{INHERIT_ONLY_ACE, INHERITED_ACE};

/// Files and directories that are created below inherit the entry.
pub const INHERITED_BY_CHILDREN: u8 = OBJECT_INHERIT_ACE | CONTAINER_INHERIT_ACE;

/// The size of an ACL is a 16-bit number.
const LARGEST: usize = 0xffff;

/// A file's security descriptor, without owner, group and audit list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecurityDescriptor {
    control: u16,
    /// A file without a DACL is open to every user.
    pub dacl: Option<Dacl>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dacl {
    revision: u8,
    entries: Vec<Ace>,
}

/// An access control entry of any type; the body stays as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ace {
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

impl SecurityDescriptor {
    const HEADER: usize = 20;

    /// From the self-relative form, whose offsets point into the bytes themselves.
    pub fn parse(from: &[u8]) -> Option<SecurityDescriptor> {
        let control = u16::from_le_bytes(bytes(from, 2)?);
        let at = usize::try_from(long(from, 16)?).ok()?;
        let is_present = control & SE_DACL_PRESENT != 0 && at != 0;
        let dacl = match is_present {
            true => Some(Dacl::parse(from.get(at..)?)?),
            false => None,
        };
        Some(SecurityDescriptor { control, dacl })
    }

    /// The self-relative form with another DACL; the inheritance bits stay as they were.
    pub fn bytes_with(&self, dacl: &Dacl) -> Option<Vec<u8>> {
        let mut control = self.control & (SE_DACL_AUTO_INHERITED | SE_DACL_PROTECTED);
        control |= SE_SELF_RELATIVE | SE_DACL_PRESENT;
        if control & SE_DACL_AUTO_INHERITED != 0 {
            // Without this bit the system clears SE_DACL_AUTO_INHERITED.
            control |= SE_DACL_AUTO_INHERIT_REQ;
        }
        let mut all = vec![1, 0];
        all.extend(control.to_le_bytes());
        all.extend([0; 12]);
        all.extend((Self::HEADER as u32).to_le_bytes());
        all.extend(dacl.bytes()?);
        Some(all)
    }
}

impl Dacl {
    const HEADER: usize = 8;

    fn parse(from: &[u8]) -> Option<Dacl> {
        let revision = *from.first()?;
        let from = from.get(..short(from, 2)?)?;
        let count = short(from, 4)?;
        let mut entries = Vec::new();
        let mut at = Self::HEADER;
        for _ in 0..count {
            let size = short(from, at + 2)?;
            let whole = from.get(at..at.checked_add(size)?)?;
            let body = whole.get(4..)?.to_vec();
            entries.push(Ace { kind: *whole.first()?, flags: *whole.get(1)?, body });
            at += size;
        }
        Some(Dacl { revision, entries })
    }

    /// `None` when it would be larger than an ACL can be.
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

    /// With more entries, in the canonical order: explicit entries before inherited ones.
    pub fn with(&self, added: &[Ace]) -> Dacl {
        let mut entries = self.entries.clone();
        for entry in added {
            let first_inherited = entries.iter().position(|entry| entry.flags & INHERITED_ACE != 0);
            let at = match entry.flags & INHERITED_ACE {
                0 => first_inherited.unwrap_or(entries.len()),
                _ => entries.len(),
            };
            entries.insert(at, entry.clone());
        }
        Dacl { revision: self.revision, entries }
    }

    /// Without any entry for a SID, explicit or inherited.
    pub fn without(&self, sid: &[u8]) -> Dacl {
        let entries = self.entries.iter().filter(|entry| entry.sid() != Some(sid));
        Dacl { revision: self.revision, entries: entries.cloned().collect() }
    }

    pub fn has(&self, ace: &Ace) -> bool {
        self.entries.contains(ace)
    }

    pub fn has_ace_for(&self, sid: &[u8]) -> bool {
        self.entries.iter().any(|entry| entry.sid() == Some(sid))
    }

    /// Whether new children inherit an entry for a SID.
    pub fn is_inherited_by_children(&self, sid: &[u8]) -> bool {
        self.entries
            .iter()
            .any(|entry| entry.sid() == Some(sid) && entry.flags & INHERITED_BY_CHILDREN != 0)
    }

    /// The access mask that the object itself allows a SID, without what it denies it.
    pub fn granted_access(&self, sid: &[u8]) -> u32 {
        let of = |kind: u8| {
            let applies = move |entry: &&Ace| {
                entry.kind == kind
                    && entry.flags & INHERIT_ONLY_ACE == 0
                    && entry.sid() == Some(sid)
            };
            self.entries
                .iter()
                .filter(applies)
                .filter_map(Ace::mask)
                .fold(0, |all, mask| all | mask)
        };
        of(ACCESS_ALLOWED_ACE_TYPE) & !of(ACCESS_DENIED_ACE_TYPE)
    }
}

impl Ace {
    pub fn allow(sid: &[u8], mask: u32, flags: u8) -> Ace {
        let body = mask.to_le_bytes().into_iter().chain(sid.iter().copied()).collect();
        Ace { kind: ACCESS_ALLOWED_ACE_TYPE, flags, body }
    }

    fn is_plain(&self) -> bool {
        self.kind == ACCESS_ALLOWED_ACE_TYPE || self.kind == ACCESS_DENIED_ACE_TYPE
    }

    fn mask(&self) -> Option<u32> {
        long(&self.body, 0).filter(|_| self.is_plain())
    }

    /// The SID of an entry that allows or denies; `None` for other types.
    fn sid(&self) -> Option<&[u8]> {
        let parts = usize::from(*self.body.get(5)?);
        self.body.get(4..4 + 8 + 4 * parts).filter(|_| self.is_plain())
    }
}

/// Whether a security descriptor, read for its mandatory label, has the label Low. A process in an AppContainer has that
/// integrity level, and files that it creates keep it.
pub fn has_low_label(from: &[u8]) -> bool {
    const LOW_INTEGRITY: &str = "S-1-16-4096";
    let label = || -> Option<bool> {
        let control = u16::from_le_bytes(bytes(from, 2)?);
        let at = usize::try_from(long(from, 12)?).ok()?;
        if control & SE_SACL_PRESENT == 0 || at == 0 {
            return Some(false);
        }
        let low = sid(LOW_INTEGRITY)?;
        let is_low = |ace: &Ace| {
            ace.kind == SYSTEM_MANDATORY_LABEL_ACE_TYPE && ace.body.get(4..) == Some(low.as_slice())
        };
        Some(Dacl::parse(from.get(at..)?)?.entries.iter().any(is_low))
    };
    label().unwrap_or(false)
}

/// A security descriptor that sets no mandatory label: the object then counts as Medium.
pub fn without_label() -> Vec<u8> {
    let mut all = vec![1, 0];
    all.extend((SE_SELF_RELATIVE | SE_SACL_PRESENT).to_le_bytes());
    all.extend([0; 8]);
    all.extend((SecurityDescriptor::HEADER as u32).to_le_bytes());
    all.extend([0; 4]);
    // An ACL of revision 2, eight bytes long, without entries.
    all.extend([2, 0, 8, 0, 0, 0, 0, 0]);
    all
}

/// The binary form of a SID, from its string form (`S-1-…`).
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

    pub fn empty() -> Dacl {
        Dacl { revision: 2, entries: Vec::new() }
    }

    fn someone() -> Vec<u8> {
        sid("S-1-5-21-1-2-3-1001").unwrap()
    }

    fn ours() -> Vec<u8> {
        sid("S-1-15-2-1-2-3-4-5-6-7").unwrap()
    }

    #[test]
    fn a_sid_has_its_binary_form() {
        assert_eq!(
            sid("S-1-5-32-544").unwrap(),
            [1, 2, 0, 0, 0, 0, 0, 5, 32, 0, 0, 0, 32, 2, 0, 0]
        );
        for odd in ["", "S-1", "S-1-", "S-1-x", "S-2-5", "S-1-5-99999999999"] {
            assert_eq!(sid(odd), None, "{odd}");
        }
    }

    #[test]
    fn a_low_label_is_seen_and_cleared() {
        let mut low = without_label();
        let ace = Ace {
            kind: SYSTEM_MANDATORY_LABEL_ACE_TYPE,
            ..Ace::allow(&sid("S-1-16-4096").unwrap(), 1, 0)
        };
        low.truncate(SecurityDescriptor::HEADER);
        low.extend(empty().with(&[ace]).bytes().unwrap());
        assert!(has_low_label(&low) && !has_low_label(&without_label()) && !has_low_label(&[]));
    }

    #[test]
    fn entries_are_in_canonical_order() {
        let denied = Ace { kind: ACCESS_DENIED_ACE_TYPE, ..Ace::allow(&someone(), 1, 0) };
        let above = Ace::allow(&someone(), 2, INHERITED_ACE);
        let list = empty().with(&[denied, above]);
        let list = list.with(&[
            Ace::allow(&ours(), 4, INHERITED_BY_CHILDREN),
            Ace::allow(&ours(), 8, INHERITED_ACE),
        ]);
        let order: Vec<u8> = list.entries.iter().map(|entry| entry.flags & INHERITED_ACE).collect();
        assert_eq!(order, [0, 0, INHERITED_ACE, INHERITED_ACE]);
        assert_eq!(list.entries[0].kind, ACCESS_DENIED_ACE_TYPE, "denying entries stay first");
        assert_eq!(list.granted_access(&ours()), 12);
        assert!(
            list.is_inherited_by_children(&ours()) && !list.is_inherited_by_children(&someone())
        );
    }

    #[test]
    fn an_inherit_only_entry_grants_nothing_on_the_object() {
        let list =
            empty().with(&[Ace::allow(&ours(), 0xff, INHERITED_BY_CHILDREN | INHERIT_ONLY_ACE)]);
        assert_eq!(list.granted_access(&ours()), 0);
        assert!(list.has_ace_for(&ours()));
        assert!(!list.without(&ours()).has_ace_for(&ours()));
    }

    fn any_list() -> impl Strategy<Value = Dacl> {
        let body = prop::collection::vec(any::<u8>(), 0..6)
            .prop_map(|words| words.into_iter().flat_map(|word| [word; 4]).collect::<Vec<u8>>());
        let entry = (any::<u8>(), any::<u8>(), body).prop_map(|(kind, flags, body)| Ace {
            kind,
            flags,
            body,
        });
        prop::collection::vec(entry, 0..8).prop_map(|entries| Dacl { revision: 2, entries })
    }

    proptest! {
        #[test]
        fn a_written_dacl_reads_back(list in any_list(), control in any::<u16>()) {
            let before = SecurityDescriptor { control, dacl: None };
            let read = SecurityDescriptor::parse(&before.bytes_with(&list).unwrap()).unwrap();
            prop_assert_eq!(read.dacl, Some(list));
            let preserved = SE_DACL_PROTECTED | SE_DACL_AUTO_INHERITED;
            prop_assert_eq!(read.control & preserved, control & preserved);
        }

        /// Adding entries and removing them changes nothing for other SIDs.
        #[test]
        fn removing_what_was_added_restores_the_dacl(list in any_list(), mask in any::<u32>(), flags in any::<u8>()) {
            let list = list.without(&ours());
            let longer = list.with(&[Ace::allow(&ours(), mask, flags)]);
            prop_assert!(longer.has_ace_for(&ours()));
            prop_assert_eq!(longer.granted_access(&someone()), list.granted_access(&someone()));
            prop_assert_eq!(longer.without(&ours()), list);
        }

        #[test]
        fn any_bytes_are_parsed_or_refused(from in prop::collection::vec(any::<u8>(), 0..64)) {
            let _ = SecurityDescriptor::parse(&from);
        }
    }
}
