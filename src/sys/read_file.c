/* Reading whole files. */
#include "sys/read_file.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_LEN 4096

#define FIRST_SIZE ((size_t)64 << 10) /* where the size is not known beforehand */

static enum ss_status status_of(int error)
{
    switch (error) {
    case ENOENT:
    case ENOTDIR:
        return SS_ERR_NOT_FOUND;
    case EACCES:
    case EPERM:
        return SS_ERR_PERMISSION;
    case ENOMEM:
        return SS_ERR_MEMORY;
    default:
        return SS_ERR_IO;
    }
}

/* What is read may hold passwords, so buffers that are left are cleared first. */
static void clear_and_free(char *buffer, size_t size)
{
    volatile char *p = buffer;

    while (size-- > 0)
        *p++ = 0;
    free(buffer);
}

/* A larger buffer with what is in the old one. */
static char *grow(char *buffer, size_t used, size_t size)
{
    char *larger = malloc(size);

    if (larger != NULL) {
        memcpy(larger, buffer, used);
        clear_and_free(buffer, used);
    }
    return larger;
}

/* Room for one byte more than the limit tells a file that is too long from one that just fits. */
static enum ss_status read_all(int fd, char **buffer, size_t *used, size_t size, size_t limit)
{
    while (true) {
        ssize_t got;

        if (*used == size - 1) {
            char *larger;

            if (size > limit)
                return SS_ERR_LIMIT;
            size = size > limit / 2 ? limit + 2 : size * 2;
            larger = grow(*buffer, *used, size);
            if (larger == NULL)
                return SS_ERR_MEMORY;
            *buffer = larger;
        }
        got = read(fd, *buffer + *used, size - 1 - *used);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return status_of(errno);
        if (got == 0)
            return *used > limit ? SS_ERR_LIMIT : SS_OK;
        *used += (size_t)got;
    }
}

static char folder[PATH_LEN]; /* "": not kept, or too long */

void ss_file_keep_folder(void)
{
    if (getcwd(folder, sizeof folder) == NULL)
        folder[0] = '\0';
}

static const struct ss_handed_file *handed;
static size_t handed_count;

void ss_file_take_handed(const struct ss_handed_file *list, size_t count)
{
    handed = list;
    handed_count = count;
}

/* A descriptor of its own, at the beginning; or -1, and errno stays. */
static int find_handed(const char *path)
{
    int error = errno, fd = -1;

    for (size_t i = 0; i < handed_count && fd < 0; i++)
        if (handed[i].fd >= 0 && strcmp(handed[i].path, path) == 0)
            fd = fcntl(handed[i].fd, F_DUPFD_CLOEXEC, 0);
    if (fd >= 0)
        (void)lseek(fd, 0, SEEK_SET); /* what can't seek has not been read */
    errno = error;
    return fd;
}

/* Into `whole`, if it is needed; what is too long stays as it is, and fails as such. */
static const char *complete(const char *path, char whole[2 * PATH_LEN])
{
    if (path[0] == '/' || folder[0] == '\0' ||
        (size_t)snprintf(whole, 2 * PATH_LEN, "%s/%s", folder, path) >= 2 * PATH_LEN)
        return path;
    return whole;
}

char *ss_file_absolute(const char *path)
{
    char whole[2 * PATH_LEN];

    return strdup(complete(path, whole));
}

static int open_file(const char *path)
{
    char whole[2 * PATH_LEN];
    int fd;

    path = complete(path, whole);
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    return fd < 0 && (errno == EACCES || errno == EPERM) ? find_handed(path) : fd;
}

enum ss_status ss_file_read(char **text, size_t *len, const char *path, size_t limit)
{
    struct stat about;
    enum ss_status status;
    char *buffer = NULL;
    size_t used = 0, size = FIRST_SIZE;
    int fd = open_file(path);

    *text = NULL;
    *len = 0;
    if (fd < 0)
        return status_of(errno);
    status = SS_ERR_IO;
    if (fstat(fd, &about) != 0)
        goto done;
    status = SS_ERR_ARGUMENT;
    if (S_ISDIR(about.st_mode))
        goto done;
    status = SS_ERR_LIMIT;
    if (S_ISREG(about.st_mode)) {
        if (about.st_size < 0 || (uintmax_t)about.st_size > limit)
            goto done;
        size = (size_t)about.st_size + 2;
    }
    status = SS_ERR_MEMORY;
    buffer = malloc(size);
    if (buffer == NULL)
        goto done;
    status = read_all(fd, &buffer, &used, size, limit);
    if (status != SS_OK)
        goto done;

    buffer[used] = '\0';
    *text = buffer;
    *len = used;
    buffer = NULL;
done:
    if (buffer != NULL)
        clear_and_free(buffer, used);
    close(fd);
    return status;
}
