/* Records, in their true order, all changes that a program makes to the files below one directory.
 *
 * Preloaded (LD_PRELOAD) into a 64-bit Linux program, it stands before the C library's calls, carries each of them
 * out by the bare system call, and appends what happened to a journal that replay.py reads:
 *
 *     POWER_WATCHED             the directory, as a canonical path
 *     POWER_JOURNAL             the journal, outside of it
 *     <journal>.sync_fails      while this file exists, fsync and fdatasync fail with EIO
 *     <journal>.disk_full       while this file exists, write, pwrite and ftruncate fail with ENOSPC
 *
 * but only for files whose names end in what the trigger file holds, so for all if it is empty.
 * Marks (files named *.revealed) never fail: they stand for the world outside, which is no disk.
 * A file is known by its inode, and a descriptor is looked up in /proc at every call instead of in a table of our own:
 * so dup, fork, close_range and rename need no care. What changes files in ways the journal has no words for
 * (writev, sendfile, copy_file_range, splice, punching holes, linking or renaming across directories) is refused.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/falloc.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#define ROOM (PATH_MAX + 64)
#define UNUSUAL_DESCRIPTOR 200

enum kind { CREATED = 1, REMOVED, RENAMED, WRITTEN, RESIZED, SYNC_BEGUN, SYNC_DONE, SYNC_FAILED, LINKED };

struct __attribute__((packed)) header {
    uint8_t kind;
    uint16_t name_length, other_length;
    uint32_t thread;
    uint64_t file, number, data_length;
};

struct place {
    char name[ROOM];
    uint64_t file;
    off_t size;
};

static const char *watched;
static size_t watched_length;
static int journal = -1;
static char sync_fails[ROOM], disk_full[ROOM];
static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;

static void give_up(const char *why) {
    fprintf(stderr, "record.c: %s: %s\n", why, strerror(errno));
    abort();
}

/* ---- the lock: a mutex between threads, a record lock between processes ---- */

static void set_journal_lock(short type) {
    struct flock whole = {.l_type = type, .l_whence = SEEK_SET};
    while (syscall(SYS_fcntl, journal, F_SETLKW, &whole) != 0)
        if (errno != EINTR) give_up("cannot lock the journal");
}

static void hold_threads(void) { pthread_mutex_lock(&one_at_a_time); }
static void release_threads(void) { pthread_mutex_unlock(&one_at_a_time); }

static void lock(void) {
    hold_threads();
    set_journal_lock(F_WRLCK);
}

/* errno belongs to the call that was carried out, not to the recorder. */
static void unlock(void) {
    int kept = errno;
    set_journal_lock(F_UNLCK);
    release_threads();
    errno = kept;
}

/* ---- the journal ---- */

static void append(enum kind kind, const char *name, const char *other, uint64_t file, uint64_t number,
                   const void *data, size_t length) {
    int kept = errno;
    struct header header = {kind,  strlen(name), strlen(other), syscall(SYS_gettid), file, number, length};
    struct iovec parts[] = {{&header, sizeof header},
                            {(void *)name, header.name_length},
                            {(void *)other, header.other_length},
                            {(void *)data, length}};
    ssize_t whole = sizeof header + header.name_length + header.other_length + length;
    if (syscall(SYS_writev, journal, parts, 4) != whole) give_up("cannot append to the journal");
    errno = kept;
}

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("POWER_JOURNAL"), *folder = getenv("POWER_WATCHED");
    if (path == NULL || folder == NULL) return;
    int low = syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    /* High up, so that programs which count on low numbers, or close them, are not disturbed. */
    journal = syscall(SYS_fcntl, low, F_DUPFD_CLOEXEC, UNUSUAL_DESCRIPTOR);
    if (journal < 0) give_up("cannot open the journal");
    syscall(SYS_close, low);
    snprintf(sync_fails, ROOM, "%s.sync_fails", path);
    snprintf(disk_full, ROOM, "%s.disk_full", path);
    pthread_atfork(hold_threads, release_threads, release_threads);
    watched_length = strlen(folder);
    watched = folder;
}

/* ---- which file is it? ---- */

static int below_watched(const char *path, char *name) {
    if (watched == NULL || strncmp(path, watched, watched_length) != 0) return 0;
    const char *rest = path + watched_length;
    if (*rest != '/' && *rest != '\0') return 0;
    strcpy(name, *rest == '/' ? rest + 1 : rest);
    return 1;
}

static int canonical(int fd, char *path) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = syscall(SYS_readlinkat, AT_FDCWD, link, path, ROOM - 1);
    if (length < 0) return 0;
    path[length] = '\0';
    return 1;
}

static int ends_in(const char *name, const char *ending) {
    size_t all = strlen(name), some = strlen(ending);
    return all >= some && strcmp(name + all - some, ending) == 0;
}

/* Whether an open descriptor is of a watched file or directory, and of which. */
static int find(int fd, struct place *place) {
    char path[ROOM];
    struct stat found;
    int kept = errno;
    int known = watched != NULL && canonical(fd, path) && below_watched(path, place->name) && fstat(fd, &found) == 0;
    errno = kept;
    if (!known) return 0;
    if (found.st_nlink == 0 && ends_in(place->name, " (deleted)"))
        place->name[strlen(place->name) - strlen(" (deleted)")] = '\0';
    place->file = found.st_ino;
    place->size = found.st_size;
    return 1;
}

/* Whether a path, which need not exist, would be a file below the watched directory, and its name there. */
static int find_name(int directory, const char *path, char *name) {
    char parent[ROOM], full[ROOM];
    if (watched == NULL || path == NULL || strlen(path) >= PATH_MAX) return 0;
    const char *slash = strrchr(path, '/'), *last = slash ? slash + 1 : path;
    if (*last == '\0' || strcmp(last, ".") == 0 || strcmp(last, "..") == 0) return 0;
    snprintf(parent, ROOM, "%.*s", slash ? (int)(last - path) : 1, slash ? path : ".");
    int kept = errno, fd = syscall(SYS_openat, directory, parent, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int known = fd >= 0 && canonical(fd, full);
    if (fd >= 0) syscall(SYS_close, fd);
    errno = kept;
    if (!known || strlen(full) + 1 + strlen(last) >= ROOM) return 0;
    return below_watched(strcat(strcat(full, "/"), last), name);
}

static int fails(const char *trigger, const char *name) {
    char ending[ROOM] = "";
    int kept = errno, fd = syscall(SYS_openat, AT_FDCWD, trigger, O_RDONLY | O_CLOEXEC);
    int on = fd >= 0 && syscall(SYS_read, fd, ending, ROOM - 1) >= 0;
    if (fd >= 0) syscall(SYS_close, fd);
    errno = kept;
    return on && ends_in(name, ending) && !ends_in(name, ".revealed");
}

static int refuse(int number) {
    errno = number;
    return -1;
}

/* ---- names: open, unlink, rename, link ---- */

static int recorded_open(int directory, const char *path, int flags, mode_t mode) {
    struct stat before;
    struct place place;
    int kept = errno;
    int existed = syscall(SYS_newfstatat, directory, path, &before, 0) == 0;
    errno = kept;
    int fd = syscall(SYS_openat, directory, path, flags, mode);
    if (fd < 0 || !find(fd, &place)) return fd;
    if (!existed)
        append(CREATED, place.name, "", place.file, 0, "", 0);
    else if ((flags & O_TRUNC) && before.st_size > 0)
        append(RESIZED, place.name, "", place.file, 0, "", 0);
    return fd;
}

static int opens(int directory, const char *path, int flags, mode_t mode) {
    char name[ROOM];
    if (!(flags & (O_CREAT | O_TRUNC)) || !find_name(directory, path, name))
        return syscall(SYS_openat, directory, path, flags, mode);
    lock();
    int fd = recorded_open(directory, path, flags, mode);
    unlock();
    return fd;
}

#define MODE_OF(flags, mode)                                    \
    mode_t mode = 0;                                            \
    if ((flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE) { \
        va_list rest;                                           \
        va_start(rest, flags);                                  \
        mode = va_arg(rest, mode_t);                            \
        va_end(rest);                                           \
    }

int open(const char *path, int flags, ...) {
    MODE_OF(flags, mode)
    return opens(AT_FDCWD, path, flags, mode);
}

int openat(int directory, const char *path, int flags, ...) {
    MODE_OF(flags, mode)
    return opens(directory, path, flags, mode);
}

int creat(const char *path, mode_t mode) { return opens(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode); }

int unlinkat(int directory, const char *path, int flags) {
    char name[ROOM];
    if ((flags & AT_REMOVEDIR) || !find_name(directory, path, name))
        return syscall(SYS_unlinkat, directory, path, flags);
    lock();
    int result = syscall(SYS_unlinkat, directory, path, flags);
    if (result == 0) append(REMOVED, name, "", 0, 0, "", 0);
    unlock();
    return result;
}

int unlink(const char *path) { return unlinkat(AT_FDCWD, path, 0); }

static int siblings(const char *one, const char *other) {
    const char *a = strrchr(one, '/'), *b = strrchr(other, '/');
    size_t first = a ? a - one : 0, second = b ? b - other : 0;
    return first == second && strncmp(one, other, first) == 0;
}

int renameat(int from_directory, const char *from, int to_directory, const char *to) {
    char old[ROOM], new[ROOM];
    int leaves = find_name(from_directory, from, old), arrives = find_name(to_directory, to, new);
    if (!leaves && !arrives) return syscall(SYS_renameat2, from_directory, from, to_directory, to, 0);
    if (!leaves || !arrives || !siblings(old, new)) return refuse(EXDEV);
    lock();
    int result = syscall(SYS_renameat2, from_directory, from, to_directory, to, 0);
    if (result == 0) append(RENAMED, old, new, 0, 0, "", 0);
    unlock();
    return result;
}

int rename(const char *from, const char *to) { return renameat(AT_FDCWD, from, AT_FDCWD, to); }

int linkat(int from_directory, const char *from, int to_directory, const char *to, int flags) {
    char old[ROOM], new[ROOM];
    int known = find_name(from_directory, from, old), arrives = find_name(to_directory, to, new);
    if (!known && !arrives) return syscall(SYS_linkat, from_directory, from, to_directory, to, flags);
    if (!known || !arrives || !siblings(old, new)) return refuse(EXDEV);
    lock();
    int result = syscall(SYS_linkat, from_directory, from, to_directory, to, flags);
    if (result == 0) append(LINKED, old, new, 0, 0, "", 0);
    unlock();
    return result;
}

int link(const char *from, const char *to) { return linkat(AT_FDCWD, from, AT_FDCWD, to, 0); }

/* ---- contents: write, truncate, allocate ---- */

ssize_t write(int fd, const void *data, size_t length) {
    struct place place;
    if (!find(fd, &place)) return syscall(SYS_write, fd, data, length);
    if (fails(disk_full, place.name)) return refuse(ENOSPC);
    lock();
    ssize_t done = syscall(SYS_write, fd, data, length);
    if (done > 0) append(WRITTEN, place.name, "", place.file, syscall(SYS_lseek, fd, 0, SEEK_CUR) - done, data, done);
    unlock();
    return done;
}

ssize_t pwrite(int fd, const void *data, size_t length, off_t offset) {
    struct place place;
    if (!find(fd, &place)) return syscall(SYS_pwrite64, fd, data, length, offset);
    if (fails(disk_full, place.name)) return refuse(ENOSPC);
    lock();
    /* Linux appends, whatever the offset, to a file opened with O_APPEND. */
    int appends = syscall(SYS_fcntl, fd, F_GETFL) & O_APPEND;
    if (appends && find(fd, &place)) offset = place.size;
    ssize_t done = syscall(SYS_pwrite64, fd, data, length, offset);
    if (done > 0) append(WRITTEN, place.name, "", place.file, offset, data, done);
    unlock();
    return done;
}

int ftruncate(int fd, off_t size) {
    struct place place;
    if (!find(fd, &place)) return syscall(SYS_ftruncate, fd, size);
    if (fails(disk_full, place.name)) return refuse(ENOSPC);
    lock();
    int result = syscall(SYS_ftruncate, fd, size);
    if (result == 0) append(RESIZED, place.name, "", place.file, size, "", 0);
    unlock();
    return result;
}

int truncate(const char *path, off_t size) {
    int fd = syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CLOEXEC);
    if (fd < 0) return -1;
    int result = ftruncate(fd, size), kept = errno;
    syscall(SYS_close, fd);
    errno = kept;
    return result;
}

int fallocate(int fd, int mode, off_t offset, off_t length) {
    struct place place;
    if (!find(fd, &place)) return syscall(SYS_fallocate, fd, mode, offset, length);
    if (mode & ~FALLOC_FL_KEEP_SIZE) return refuse(EOPNOTSUPP);
    if (fails(disk_full, place.name)) return refuse(ENOSPC);
    lock();
    int result = syscall(SYS_fallocate, fd, mode, offset, length);
    int grew = result == 0 && mode == 0 && find(fd, &place);
    if (grew) append(RESIZED, place.name, "", place.file, place.size, "", 0);
    unlock();
    return result;
}

int posix_fallocate(int fd, off_t offset, off_t length) {
    int kept = errno, number = fallocate(fd, 0, offset, length) == 0 ? 0 : errno;
    errno = kept;
    return number;
}

/* ---- sync: outside the lock, so that others may write meanwhile, and their writes are not covered ---- */

static void append_locked(enum kind kind, struct place *place) {
    lock();
    append(kind, place->name, "", place->file, 0, "", 0);
    unlock();
}

static int sync_by(long call, int fd) {
    struct place place;
    if (!find(fd, &place)) return syscall(call, fd);
    append_locked(SYNC_BEGUN, &place);
    int result = fails(sync_fails, place.name) ? refuse(EIO) : syscall(call, fd);
    append_locked(result == 0 ? SYNC_DONE : SYNC_FAILED, &place);
    return result;
}

int fsync(int fd) { return sync_by(SYS_fsync, fd); }
int fdatasync(int fd) { return sync_by(SYS_fdatasync, fd); }

/* ---- what the journal has no words for ---- */

ssize_t writev(int fd, const struct iovec *parts, int count) {
    struct place place;
    return find(fd, &place) ? refuse(ENOSYS) : syscall(SYS_writev, fd, parts, count);
}

/* The kernel takes the offset in two halves; on 64 bits the first holds all of it. */
ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t offset) {
    struct place place;
    return find(fd, &place) ? refuse(ENOSYS) : syscall(SYS_pwritev, fd, parts, count, offset, 0);
}

ssize_t pwritev2(int fd, const struct iovec *parts, int count, off_t offset, int flags) {
    struct place place;
    return find(fd, &place) ? refuse(ENOSYS) : syscall(SYS_pwritev2, fd, parts, count, offset, 0, flags);
}

ssize_t sendfile(int to, int from, off_t *offset, size_t length) {
    struct place place;
    return find(to, &place) ? refuse(ENOSYS) : syscall(SYS_sendfile, to, from, offset, length);
}

ssize_t copy_file_range(int from, off_t *from_offset, int to, off_t *to_offset, size_t length, unsigned flags) {
    struct place place;
    if (find(to, &place)) return refuse(ENOSYS);
    return syscall(SYS_copy_file_range, from, from_offset, to, to_offset, length, flags);
}

ssize_t splice(int from, off_t *from_offset, int to, off_t *to_offset, size_t length, unsigned flags) {
    struct place place;
    if (find(to, &place)) return refuse(ENOSYS);
    return syscall(SYS_splice, from, from_offset, to, to_offset, length, flags);
}

/* ---- the same under their 64-bit names ---- */

#define ALSO(type, name, original, ...) type name(__VA_ARGS__) __attribute__((alias(#original)))
ALSO(int, open64, open, const char *, int, ...);
ALSO(int, openat64, openat, int, const char *, int, ...);
ALSO(int, creat64, creat, const char *, mode_t);
ALSO(ssize_t, pwrite64, pwrite, int, const void *, size_t, off_t);
ALSO(int, ftruncate64, ftruncate, int, off_t);
ALSO(int, truncate64, truncate, const char *, off_t);
ALSO(int, fallocate64, fallocate, int, int, off_t, off_t);
ALSO(int, posix_fallocate64, posix_fallocate, int, off_t, off_t);
ALSO(ssize_t, pwritev64, pwritev, int, const struct iovec *, int, off_t);
ALSO(ssize_t, pwritev64v2, pwritev2, int, const struct iovec *, int, off_t, int);
ALSO(ssize_t, sendfile64, sendfile, int, int, off_t *, size_t);
