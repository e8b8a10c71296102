/* Private folders and files. */
#include "sys/private_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define SUFFIX ".new"

static enum ss_status failed(const char **error_text)
{
    int error = errno;

    *error_text = strerror(error);
    switch (error) {
    case ENOENT:
    case ENOTDIR:
        return SS_ERR_NOT_FOUND;
    case EACCES:
    case EPERM:
    case EROFS:
    case ELOOP:
        return SS_ERR_PERMISSION;
    case ENOSPC:
    case EDQUOT:
        return SS_ERR_LIMIT;
    case ENOMEM:
        return SS_ERR_MEMORY;
    default:
        return SS_ERR_IO;
    }
}

enum ss_status ss_private_folder(const char *path, bool must_be_ours, const char **error_text)
{
    struct stat about;

    if (mkdir(path, 0700) == 0)
        return SS_OK;
    if (errno != EEXIST || stat(path, &about) != 0)
        return failed(error_text);
    if (!S_ISDIR(about.st_mode)) {
        errno = ENOTDIR;
        return failed(error_text);
    }
    if (must_be_ours &&
        (about.st_uid != geteuid() || lstat(path, &about) != 0 || S_ISLNK(about.st_mode))) {
        *error_text = "it is another user's";
        return SS_ERR_PERMISSION;
    }
    return SS_OK;
}

static bool write_all(int fd, const char *text, size_t len)
{
    while (len != 0) {
        ssize_t written = write(fd, text, len);

        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return false;
        text += written;
        len -= (size_t)written;
    }
    return true;
}

/* A file beside `path` that takes its place once it is whole; an open descriptor, or -1. */
static int make_beside(char *beside, size_t size, const char *path)
{
    if ((size_t)snprintf(beside, size, "%s%s", path, SUFFIX) >= size) {
        errno = ENAMETOOLONG;
        return -1;
    }
    if (unlink(beside) != 0 && errno != ENOENT)
        return -1;
    return open(beside, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
}

/* Writes, and puts it in place; the descriptor stays open. */
static bool replace(int fd, const char *beside, const char *path, const char *text, size_t len,
                    bool sync)
{
    int error;

    if (write_all(fd, text, len) && (!sync || fsync(fd) == 0) && rename(beside, path) == 0)
        return true;
    error = errno;
    (void)unlink(beside);
    errno = error;
    return false;
}

enum ss_status ss_private_write(const char *path, const char *text, size_t len,
                                const char **error_text)
{
    char beside[4096];
    int fd = make_beside(beside, sizeof beside, path);
    enum ss_status status = SS_OK;

    if (fd < 0)
        return failed(error_text);
    if (!replace(fd, beside, path, text, len, false))
        status = failed(error_text);
    close(fd);
    return status;
}

static bool is_plain_and_ours(int fd, size_t *size)
{
    struct stat about;

    if (fstat(fd, &about) != 0)
        return false;
    *size = (size_t)about.st_size;
    if (S_ISREG(about.st_mode) && about.st_uid == geteuid())
        return true;
    errno = EPERM;
    return false;
}

enum ss_status ss_journal_open(struct ss_journal *journal, const char *path,
                               const char **error_text)
{
    enum ss_status status;

    journal->size = 0;
    journal->path = strdup(path);
    journal->fd =
        open(path, O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
    if (journal->path == NULL)
        errno = ENOMEM;
    if (journal->path == NULL || journal->fd < 0 ||
        !is_plain_and_ours(journal->fd, &journal->size) || fchmod(journal->fd, 0600) != 0) {
        status = failed(error_text);
    } else if (flock(journal->fd, LOCK_EX | LOCK_NB) != 0) {
        status = failed(error_text);
        if (errno == EWOULDBLOCK) {
            *error_text = "a process that runs holds it";
            status = SS_ERR_IN_USE;
        }
    } else {
        return SS_OK;
    }
    ss_journal_close(journal);
    return status;
}

enum ss_status ss_journal_read(const struct ss_journal *journal, char **text, size_t limit,
                               const char **error_text)
{
    size_t len = 0;
    char *bytes;

    *text = NULL;
    if (journal->size > limit) {
        errno = EFBIG;
        *error_text = strerror(errno);
        return SS_ERR_LIMIT;
    }
    bytes = calloc(1, journal->size + 1);
    if (bytes == NULL)
        return failed(error_text);
    while (len < journal->size) {
        ssize_t got = pread(journal->fd, bytes + len, journal->size - len, (off_t)len);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        len += (size_t)got;
    }
    *text = bytes;
    if (len == journal->size)
        return SS_OK;
    free(bytes);
    *text = NULL;
    return failed(error_text);
}

enum ss_status ss_journal_append(struct ss_journal *journal, const char *text, size_t len,
                                 const char **error_text)
{
    enum ss_status status;

    if (journal->fd < 0) {
        errno = EBADF;
        return failed(error_text);
    }
    if (write_all(journal->fd, text, len)) {
        journal->size += len;
        return SS_OK;
    }
    status = failed(error_text);
    /* A half line would hide the next one. */
    (void)!ftruncate(journal->fd, (off_t)journal->size);
    return status;
}

enum ss_status ss_journal_replace(struct ss_journal *journal, const char *text, size_t len,
                                  const char **error_text)
{
    char beside[4096];
    enum ss_status status;
    int fd;

    if (journal->fd < 0) {
        errno = EBADF;
        return failed(error_text);
    }
    fd = make_beside(beside, sizeof beside, journal->path);
    if (fd < 0)
        return failed(error_text);
    /* The lock goes over before the name does, so that there is always one. */
    if (flock(fd, LOCK_EX | LOCK_NB) != 0 || fcntl(fd, F_SETFL, O_APPEND) != 0 ||
        !replace(fd, beside, journal->path, text, len, true)) {
        status = failed(error_text);
        close(fd);
        return status;
    }
    close(journal->fd);
    journal->fd = fd;
    journal->size = len;
    return SS_OK;
}

void ss_journal_close(struct ss_journal *journal)
{
    if (journal->fd >= 0)
        close(journal->fd);
    free(journal->path);
    journal->path = NULL;
    journal->fd = -1;
    journal->size = 0;
}
