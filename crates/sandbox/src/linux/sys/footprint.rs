//! The size of launcher and init while they wait.
//!
//! What a start needs of the program (arguments, policies, plans) is not needed for waiting, and
//! the kernel maps generously around every page that is touched. Letting go of it costs a fault
//! for each piece that is used again. The pages stay in the page cache, for the next start.

use std::ptr;

/// Returns whole pages of free memory to the system.
pub fn give_back_memory() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it takes the allocator's own locks, and touches only what is free.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Unmaps the program's own code and constants; what is used again comes back from its file.
pub fn forget_code() {
    // SAFETY: the callback gets a valid record for each loaded object while it runs, and keeps
    // nothing of it.
    unsafe { libc::dl_iterate_phdr(Some(forget_segments), ptr::null_mut()) };
}

/// Called with the main program first; anything but zero ends the walk.
unsafe extern "C" fn forget_segments(
    info: *mut libc::dl_phdr_info,
    _: libc::size_t,
    _: *mut libc::c_void,
) -> libc::c_int {
    // SAFETY: sysconf has no memory arguments.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
    // SAFETY: the record is valid for the time of this call, and its table has that many entries.
    let (base, headers) = unsafe {
        let info = &*info;
        (
            info.dlpi_addr as usize,
            std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()),
        )
    };
    // Never what was writable once: relocated addresses are in no file.
    for header in
        headers.iter().filter(|one| one.p_type == libc::PT_LOAD && one.p_flags & libc::PF_W == 0)
    {
        let start = (base + header.p_vaddr as usize) & !(page - 1);
        let end = base + header.p_vaddr as usize + header.p_memsz as usize;
        // SAFETY: a read-only mapping of the program's own file: its pages hold nothing but what
        // the file holds, and fault back in from it, this very code among them.
        unsafe {
            libc::madvise(ptr::without_provenance_mut(start), end - start, libc::MADV_DONTNEED)
        };
    }
    1
}
