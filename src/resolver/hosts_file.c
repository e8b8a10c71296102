/* Notices a changed hosts file and reads it whole, with libuv's synchronous file calls. */
#include "resolver/hosts_file.h"

#include <stdlib.h>
#include <string.h>

#include <uv.h>

#include "base/log.h"

#define CHECK_EVERY_MS 1000

void ss_hosts_file_init(struct ss_hosts_file *file, const char *path)
{
    memset(file, 0, sizeof *file);
    file->path = path;
}

void ss_hosts_file_clear(struct ss_hosts_file *file)
{
    ss_hosts_clear(&file->hosts);
}

static struct ss_hosts_stamp stamp_of(const uv_stat_t *stat)
{
    return (struct ss_hosts_stamp){
        .mtime_s = stat->st_mtim.tv_sec,
        .mtime_ns = stat->st_mtim.tv_nsec,
        .inode = stat->st_ino,
        .size = stat->st_size,
    };
}

static bool same_stamp(const struct ss_hosts_stamp *a, const struct ss_hosts_stamp *b)
{
    return a->mtime_s == b->mtime_s && a->mtime_ns == b->mtime_ns && a->inode == b->inode &&
           a->size == b->size;
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
static enum ss_status load(struct ss_hosts_file *file, uv_file fd, struct ss_hosts_stamp *stamp)
{
    enum ss_status status;
    uv_fs_t request;
    int64_t len;
    char *text;
    int error = uv_fs_fstat(NULL, &request, fd, NULL);

    if (error == 0)
        *stamp = stamp_of(&request.statbuf);
    uv_fs_req_cleanup(&request);
    if (error != 0)
        return SS_ERR_IO;
    if (stamp->size > SS_HOSTS_TEXT_MAX)
        return SS_ERR_FORMAT;

    text = malloc((size_t)stamp->size + 1);
    if (text == NULL)
        return SS_ERR_MEMORY;
    len = read_whole(fd, text, (size_t)stamp->size);
    status = len < 0 ? SS_ERR_IO : ss_hosts_parse(&file->hosts, text, (size_t)len);
    free(text);
    return status;
}

void ss_hosts_file_check(struct ss_hosts_file *file, uint64_t now_ms)
{
    struct ss_hosts_stamp stamp = {0};
    enum ss_status status = SS_OK;
    uv_fs_t request;
    int fd;

    if (file->checked && now_ms - file->checked_ms < CHECK_EVERY_MS)
        return;
    file->checked = true;
    file->checked_ms = now_ms;

    if (uv_fs_stat(NULL, &request, file->path, NULL) == 0)
        stamp = stamp_of(&request.statbuf);
    uv_fs_req_cleanup(&request);
    if (same_stamp(&stamp, &file->stamp))
        return;

    /* Never block on what is no plain file, a FIFO for one. */
    fd = uv_fs_open(NULL, &request, file->path, UV_FS_O_RDONLY | UV_FS_O_NONBLOCK, 0, NULL);
    uv_fs_req_cleanup(&request);
    if (fd < 0) {
        ss_hosts_clear(&file->hosts);
    } else {
        status = load(file, fd, &stamp);
        (void)uv_fs_close(NULL, &request, fd, NULL);
        uv_fs_req_cleanup(&request);
    }
    if (status != SS_OK)
        ss_log_warn("hosts file %s: %s; its names as known before are kept", file->path,
                    ss_status_text(status));
    file->stamp = stamp;
}
