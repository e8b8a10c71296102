/* Notices a changed file by its stamp and reads it whole, with libuv's synchronous file calls. */
#include "resolver/watched_file.h"

#include <stdlib.h>
#include <string.h>

#include <uv.h>

#define LOOK_EVERY_MS 1000

void ss_watched_file_init(struct ss_watched_file *file, const char *path, size_t len_max)
{
    memset(file, 0, sizeof *file);
    file->path = path;
    file->len_max = len_max;
}

static struct ss_file_stamp stamp_of(const uv_stat_t *stat)
{
    return (struct ss_file_stamp){
        .modified_s = stat->st_mtim.tv_sec,
        .modified_ns = stat->st_mtim.tv_nsec,
        .changed_s = stat->st_ctim.tv_sec,
        .changed_ns = stat->st_ctim.tv_nsec,
        .device = stat->st_dev,
        .inode = stat->st_ino,
        .size = stat->st_size,
    };
}

static bool same_stamp(const struct ss_file_stamp *a, const struct ss_file_stamp *b)
{
    return a->modified_s == b->modified_s && a->modified_ns == b->modified_ns &&
           a->changed_s == b->changed_s && a->changed_ns == b->changed_ns &&
           a->device == b->device && a->inode == b->inode && a->size == b->size;
}

/* Fills `text` as far as the file goes; negative on an error. */
static int64_t read_whole(uv_file fd, char *text, size_t len)
{
    size_t got = 0;

    while (got < len) {
        const uv_buf_t buf = uv_buf_init(text + got, (unsigned)(len - got));
        uv_fs_t request;
        int64_t n = uv_fs_read(NULL, &request, fd, &buf, 1, -1, NULL);

        uv_fs_req_cleanup(&request);
        if (n < 0)
            return n;
        if (n == 0)
            break;
        got += (size_t)n;
    }
    return (int64_t)got;
}

/* The stamp is taken from the open file, so that it belongs to what is read. */
static enum ss_status load(const struct ss_watched_file *file, uv_file fd,
                           struct ss_file_stamp *stamp, char **text, size_t *len)
{
    uv_fs_t request;
    int64_t got;
    int error = uv_fs_fstat(NULL, &request, fd, NULL);

    if (error == 0)
        *stamp = stamp_of(&request.statbuf);
    uv_fs_req_cleanup(&request);
    if (error != 0)
        return SS_ERR_IO;
    if (stamp->size > file->len_max)
        return SS_ERR_FORMAT;
    *text = malloc((size_t)stamp->size + 1);
    if (*text == NULL)
        return SS_ERR_MEMORY;
    got = read_whole(fd, *text, (size_t)stamp->size);
    if (got < 0) {
        free(*text);
        *text = NULL;
        return SS_ERR_IO;
    }
    *len = (size_t)got;
    return SS_OK;
}

enum ss_file_news ss_watched_file_look(struct ss_watched_file *file, uint64_t now_ms, char **text,
                                       size_t *len, enum ss_status *status)
{
    struct ss_file_stamp stamp = {0};
    enum ss_file_news news;
    uv_fs_t request;
    int fd;

    *text = NULL;
    *len = 0;
    *status = SS_OK;
    if (file->checked && now_ms - file->checked_ms < LOOK_EVERY_MS)
        return SS_FILE_SAME;
    file->checked = true;
    file->checked_ms = now_ms;

    if (uv_fs_stat(NULL, &request, file->path, NULL) == 0)
        stamp = stamp_of(&request.statbuf);
    uv_fs_req_cleanup(&request);
    if (same_stamp(&stamp, &file->stamp))
        return SS_FILE_SAME;

    /* Never block on what is no plain file, a FIFO for one. */
    fd = uv_fs_open(NULL, &request, file->path, UV_FS_O_RDONLY | UV_FS_O_NONBLOCK, 0, NULL);
    uv_fs_req_cleanup(&request);
    if (fd < 0) {
        news = SS_FILE_GONE;
    } else {
        *status = load(file, fd, &stamp, text, len);
        (void)uv_fs_close(NULL, &request, fd, NULL);
        uv_fs_req_cleanup(&request);
        news = *status == SS_OK ? SS_FILE_READ : SS_FILE_UNREADABLE;
    }
    file->stamp = stamp;
    return news;
}
