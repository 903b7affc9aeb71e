//! AppContainer profiles. Looked up when they are needed: a system without them has no such functions.

use std::ffi::c_void;
use std::io;

use windows_sys::Win32::Foundation::FreeLibrary;
use windows_sys::Win32::Security::{FreeSid, PSID, SECURITY_CAPABILITIES, SID_AND_ATTRIBUTES};
use windows_sys::Win32::System::LibraryLoader::{
    GetProcAddress, LOAD_LIBRARY_SEARCH_SYSTEM32, LoadLibraryExW,
};
use windows_sys::core::{HRESULT, PCWSTR};

use super::sid::Sid;
use super::wide;
use crate::windows::step::ContainerNetwork;

type Create = unsafe extern "system" fn(
    PCWSTR,
    PCWSTR,
    PCWSTR,
    *const SID_AND_ATTRIBUTES,
    u32,
    *mut PSID,
) -> HRESULT;
type Delete = unsafe extern "system" fn(PCWSTR) -> HRESULT;

/// internetClient, internetClientServer, privateNetworkClientServer.
const NETWORK: [&str; 3] = ["S-1-15-3-1", "S-1-15-3-2", "S-1-15-3-3"];
const SE_GROUP_ENABLED: u32 = 0x4;

/// userenv.dll, loaded while this lives.
struct Library(*mut c_void);

impl Library {
    fn open() -> io::Result<Library> {
        let name = wide("userenv.dll");
        // SAFETY: the name ends in NUL; only the system's own directory is searched.
        let module = unsafe {
            LoadLibraryExW(name.as_ptr(), std::ptr::null_mut(), LOAD_LIBRARY_SEARCH_SYSTEM32)
        };
        if module.is_null() { Err(io::Error::last_os_error()) } else { Ok(Library(module)) }
    }

    fn function(
        &self,
        name: &'static std::ffi::CStr,
    ) -> io::Result<unsafe extern "system" fn() -> isize> {
        // SAFETY: the module is loaded, the name ends in NUL.
        unsafe { GetProcAddress(self.0, name.as_ptr().cast()) }.ok_or_else(|| {
            let name = name.to_string_lossy();
            io::Error::new(io::ErrorKind::Unsupported, format!("userenv.dll has no {name}"))
        })
    }

    fn create(&self) -> io::Result<Create> {
        let function = self.function(c"CreateAppContainerProfile")?;
        // SAFETY: this is the signature that is documented for that name.
        Ok(unsafe { std::mem::transmute::<unsafe extern "system" fn() -> isize, Create>(function) })
    }

    fn delete(&self) -> io::Result<Delete> {
        let function = self.function(c"DeleteAppContainerProfile")?;
        // SAFETY: this is the signature that is documented for that name.
        Ok(unsafe { std::mem::transmute::<unsafe extern "system" fn() -> isize, Delete>(function) })
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        // SAFETY: it was loaded by us, and no function of it is used afterwards.
        unsafe { FreeLibrary(self.0) };
    }
}

fn answer(code: HRESULT) -> io::Result<()> {
    const WIN32: u32 = 0x8007_0000;
    match code.cast_unsigned() {
        _ if code >= 0 => Ok(()),
        bits if bits & 0xffff_0000 == WIN32 => {
            Err(io::Error::from_raw_os_error((bits & 0xffff).cast_signed()))
        }
        _ => Err(io::Error::from_raw_os_error(code)),
    }
}

/// Whether the system knows the kind of thing at all.
pub fn is_known() -> io::Result<()> {
    let library = Library::open()?;
    library.create().and_then(|_| library.delete()).map(drop)
}

/// A container that was made for one run.
#[derive(Debug)]
pub struct Container {
    pub sid: Sid,
    capabilities: Vec<Sid>,
}

impl Container {
    pub fn make(profile: &str, network: ContainerNetwork) -> io::Result<Container> {
        let capabilities: io::Result<Vec<Sid>> = match network {
            ContainerNetwork::Nothing => Ok(Vec::new()),
            ContainerNetwork::Host => NETWORK.iter().map(|text| Sid::parse(text)).collect(),
        };
        let capabilities = capabilities?;
        let listed = listed(&capabilities);
        let library = Library::open()?;
        let create = library.create()?;
        let name = wide(profile);
        let mut sid: PSID = std::ptr::null_mut();
        // SAFETY: the names end in NUL; the list has as many entries as is said, pointing to SIDs that
        // `capabilities` keeps; the result is a live local.
        answer(unsafe {
            create(
                name.as_ptr(),
                name.as_ptr(),
                name.as_ptr(),
                listed.as_ptr(),
                listed.len() as u32,
                &raw mut sid,
            )
        })?;
        // SAFETY: the call above gave a valid SID.
        let copy = unsafe { Sid::copy(sid) };
        // SAFETY: it is ours to free, and not used any more.
        unsafe { FreeSid(sid) };
        Ok(Container { sid: copy?, capabilities })
    }

    /// Processes that are started from now on have this capability.
    pub fn add_capability(&mut self, sid: &str) -> io::Result<()> {
        self.capabilities.push(Sid::parse(sid)?);
        Ok(())
    }

    pub(super) fn security(&self) -> Security {
        let mut listed = listed(&self.capabilities);
        let value = SECURITY_CAPABILITIES {
            AppContainerSid: self.sid.raw(),
            Capabilities: if listed.is_empty() {
                std::ptr::null_mut()
            } else {
                listed.as_mut_ptr()
            },
            CapabilityCount: listed.len() as u32,
            Reserved: 0,
        };
        Security { value, _listed: listed }
    }
}

fn listed(capabilities: &[Sid]) -> Vec<SID_AND_ATTRIBUTES> {
    let entry = |sid: &Sid| SID_AND_ATTRIBUTES { Sid: sid.raw(), Attributes: SE_GROUP_ENABLED };
    capabilities.iter().map(entry).collect()
}

/// What is said of a container at a process's creation; keeps what it points to.
pub(super) struct Security {
    value: SECURITY_CAPABILITIES,
    _listed: Vec<SID_AND_ATTRIBUTES>,
}

impl Security {
    pub(super) fn value(&self) -> &SECURITY_CAPABILITIES {
        &self.value
    }
}

/// Removes a profile and everything that was kept for it. One that is not there is as good.
pub fn remove(profile: &str) -> io::Result<()> {
    let library = Library::open()?;
    let delete = library.delete()?;
    let name = wide(profile);
    // SAFETY: the name ends in NUL.
    answer(unsafe { delete(name.as_ptr()) })
}
