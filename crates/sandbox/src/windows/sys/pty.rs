//! Pseudo consoles (Windows 10 1809 and later), and the modes of our own. Looked up when they are needed: an older
//! system has no such functions.

use std::ffi::{CStr, c_void};
use std::io::{self, PipeReader, PipeWriter};
use std::os::windows::io::AsRawHandle;

use windows_sys::Win32::Foundation::HANDLE;
use windows_sys::Win32::System::Console::{
    CONSOLE_MODE, CONSOLE_SCREEN_BUFFER_INFO, COORD, DISABLE_NEWLINE_AUTO_RETURN,
    ENABLE_PROCESSED_OUTPUT, ENABLE_VIRTUAL_TERMINAL_INPUT, ENABLE_VIRTUAL_TERMINAL_PROCESSING,
    GetConsoleMode, GetConsoleProcessList, GetConsoleScreenBufferInfo, HPCON, SetConsoleMode,
};
use windows_sys::Win32::System::LibraryLoader::{GetModuleHandleW, GetProcAddress};
use windows_sys::core::HRESULT;

use super::{check, wide};

type Create = unsafe extern "system" fn(COORD, HANDLE, HANDLE, u32, *mut HPCON) -> HRESULT;
type Resize = unsafe extern "system" fn(HPCON, COORD) -> HRESULT;
type Close = unsafe extern "system" fn(HPCON);

/// Columns and rows.
pub type Size = (i16, i16);

fn function(name: &'static CStr) -> io::Result<unsafe extern "system" fn() -> isize> {
    let library = wide("kernel32.dll");
    // SAFETY: both names end in NUL; the library is loaded in every process, and stays.
    let found = unsafe { GetProcAddress(GetModuleHandleW(library.as_ptr()), name.as_ptr().cast()) };
    found.ok_or_else(|| io::Error::from(io::ErrorKind::Unsupported))
}

fn answer(code: HRESULT) -> io::Result<()> {
    if code >= 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(code & 0xffff)) }
}

/// A console that a program sees as its own, with pipes behind it. Closing it ends what is in it.
#[derive(Debug)]
pub struct PseudoConsole {
    raw: HPCON,
    resize: Resize,
    close: Close,
}

impl PseudoConsole {
    /// The console, the end that is typed into, and the end that its picture comes out of.
    pub fn make(size: Size) -> io::Result<(PseudoConsole, PipeWriter, PipeReader)> {
        let (create, resize, close) = (
            function(c"CreatePseudoConsole")?,
            function(c"ResizePseudoConsole")?,
            function(c"ClosePseudoConsole")?,
        );
        // SAFETY: these are the signatures that are documented for those names.
        let (create, resize, close) = unsafe {
            (
                std::mem::transmute::<unsafe extern "system" fn() -> isize, Create>(create),
                std::mem::transmute::<unsafe extern "system" fn() -> isize, Resize>(resize),
                std::mem::transmute::<unsafe extern "system" fn() -> isize, Close>(close),
            )
        };
        let (keys, typed) = io::pipe()?;
        let (picture, shown) = io::pipe()?;
        let mut raw: HPCON = 0;
        // SAFETY: both handles are owned here, and the console has taken copies when the call returns; the result
        // is a live local.
        answer(unsafe {
            create(coord(size), keys.as_raw_handle(), shown.as_raw_handle(), 0, &raw mut raw)
        })?;
        let console = PseudoConsole { raw, resize, close };
        // One that accepts everything and does nothing is found out here.
        console.resize(size)?;
        Ok((console, typed, picture))
    }

    pub fn resize(&self, size: Size) -> io::Result<()> {
        // SAFETY: the console is open as long as `self` lives.
        answer(unsafe { (self.resize)(self.raw, coord(size)) })
    }

    /// As an attribute of a process: the handle itself, and no pointer to it.
    pub(super) fn attribute(&self) -> (*const c_void, usize) {
        (std::ptr::without_provenance(self.raw.cast_unsigned()), size_of::<HPCON>())
    }
}

impl Drop for PseudoConsole {
    /// Waits for its picture to be read, on older systems.
    fn drop(&mut self) {
        // SAFETY: it is open, and not used afterwards.
        unsafe { (self.close)(self.raw) };
    }
}

fn coord((columns, rows): Size) -> COORD {
    COORD { X: columns, Y: rows }
}

/// The modes that our console had, put back when this goes.
#[derive(Debug)]
pub struct Modes([CONSOLE_MODE; 2]);

impl Modes {
    /// Keys come as they are typed, Ctrl-C among them, and escape sequences mean what they say.
    pub fn raw() -> io::Result<Modes> {
        let modes = Modes([mode(0)?, mode(1)?]);
        set_mode(0, ENABLE_VIRTUAL_TERMINAL_INPUT)?;
        let output = ENABLE_PROCESSED_OUTPUT
            | ENABLE_VIRTUAL_TERMINAL_PROCESSING
            | DISABLE_NEWLINE_AUTO_RETURN;
        set_mode(1, output)?;
        Ok(modes)
    }
}

impl Drop for Modes {
    fn drop(&mut self) {
        for (number, mode) in self.0.into_iter().enumerate() {
            let _ = set_mode(number, mode);
        }
    }
}

fn standard(number: usize) -> HANDLE {
    match number {
        0 => io::stdin().as_raw_handle(),
        _ => io::stdout().as_raw_handle(),
    }
}

fn mode(number: usize) -> io::Result<CONSOLE_MODE> {
    let mut mode = 0;
    // SAFETY: the call fails on what is no console; the result is a live local.
    check(unsafe { GetConsoleMode(standard(number), &raw mut mode) })?;
    Ok(mode)
}

fn set_mode(number: usize, mode: CONSOLE_MODE) -> io::Result<()> {
    // SAFETY: the call fails on what is no console.
    check(unsafe { SetConsoleMode(standard(number), mode) })
}

/// How large our own console is: what is seen of it.
pub fn size() -> io::Result<Size> {
    let mut info = CONSOLE_SCREEN_BUFFER_INFO::default();
    // SAFETY: the call fails on what is no console; the result is a live local.
    check(unsafe { GetConsoleScreenBufferInfo(standard(1), &raw mut info) })?;
    let seen = info.srWindow;
    Ok(((seen.Right - seen.Left + 1).max(1), (seen.Bottom - seen.Top + 1).max(1)))
}

/// The processes in the console of this one.
pub fn neighbours() -> io::Result<Vec<u32>> {
    let mut list = [0u32; 64];
    // SAFETY: the buffer has the length that is said.
    match unsafe { GetConsoleProcessList(list.as_mut_ptr(), list.len() as u32) } {
        0 => Err(io::Error::last_os_error()),
        count => Ok(list.iter().take(count as usize).copied().collect()),
    }
}
