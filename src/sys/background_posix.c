/* Going to the background, with a file for the process id. */
#include "sys/process.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static bool is_regular(int fd)
{
    struct stat about;

    return fstat(fd, &about) == 0 && S_ISREG(about.st_mode);
}

static bool write_pid(int fd, pid_t pid)
{
    char text[24];
    int len = snprintf(text, sizeof text, "%ld", (long)pid);

    /* What can't be cut, a pipe or a device, needs no cutting. */
    if (is_regular(fd) && ftruncate(fd, 0) != 0)
        return false;
    return write(fd, text, (size_t)len) == len;
}

/* The parent's part: back when the child has said a word, or can't any more. True: it serves. */
static bool wait_for_child(pid_t child, int fd, int *exit_code)
{
    char word;
    ssize_t got;
    int how = 0;

    do
        got = read(fd, &word, 1);
    while (got < 0 && errno == EINTR);
    *exit_code = 0;
    if (got != 1) {
        while (waitpid(child, &how, 0) < 0 && errno == EINTR)
            ;
        *exit_code = WIFEXITED(how) && WEXITSTATUS(how) != 0 ? WEXITSTATUS(how) : 255;
    }
    close(fd);
    return got == 1;
}

/* Closes what is open and leaves a struct that stands for no background. */
static void forget(struct ss_background *background)
{
    if (background->pid_fd >= 0)
        close(background->pid_fd);
    if (background->ready_fd >= 0)
        close(background->ready_fd);
    free(background->pid_path);
    memset(background, 0, sizeof *background);
    background->pid_fd = background->ready_fd = -1;
}

static bool is_there(const char *path, int fd)
{
    struct stat ours, there;

    return fstat(fd, &ours) == 0 && stat(path, &there) == 0 && ours.st_dev == there.st_dev &&
           ours.st_ino == there.st_ino;
}

/* Only what is still our file: someone may have put another in its place. */
static void remove_file(const struct ss_background *background)
{
    if (is_regular(background->pid_fd) && is_there(background->pid_path, background->pid_fd) &&
        unlink(background->pid_path) != 0 && ftruncate(background->pid_fd, 0) != 0)
        errno = 0;
}

static void detach(void)
{
    int null;

    umask(022);
    setsid();
    if (chdir("/") != 0)
        errno = 0; /* it only keeps a file system busy */
    null = open("/dev/null", O_RDWR);
    if (null < 0)
        return;
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        dup2(null, fd);
    if (null > STDERR_FILENO)
        close(null);
}

enum ss_background_side ss_background_enter(struct ss_background *background, const char *pid_path,
                                            const char **error_text, int *exit_code)
{
    int ends[2] = {-1, -1};
    pid_t child;

    memset(background, 0, sizeof *background);
    background->pid_fd = background->ready_fd = -1;
    background->pid_path = ss_path_absolute(pid_path);
    if (background->pid_path == NULL)
        goto failed;
    /* A pipe that nobody reads is an error, not a reason to wait. */
    background->pid_fd =
        open(background->pid_path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0666);
    if (background->pid_fd < 0)
        goto failed;
    if (is_regular(background->pid_fd) && flock(background->pid_fd, LOCK_EX | LOCK_NB) != 0 &&
        errno == EWOULDBLOCK) {
        *error_text = "a process that runs holds it";
        goto failed_with_text;
    }
    if (pipe(ends) != 0)
        goto failed;
    fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    fcntl(ends[1], F_SETFD, FD_CLOEXEC);

    child = fork();
    if (child < 0)
        goto failed;
    if (child == 0) {
        close(ends[0]);
        background->ready_fd = ends[1];
        detach();
        return SS_BACKGROUND_CHILD;
    }
    close(ends[1]);
    if (!write_pid(background->pid_fd, child)) {
        *error_text = strerror(errno);
        kill(child, SIGKILL);
        while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
            ;
        ends[1] = -1;
        remove_file(background);
        goto failed_with_text;
    }
    if (!wait_for_child(child, ends[0], exit_code))
        remove_file(background);
    forget(background);
    return SS_BACKGROUND_PARENT;

failed:
    *error_text = strerror(errno);
failed_with_text:
    for (int i = 0; i < 2; i++)
        if (ends[i] >= 0)
            close(ends[i]);
    forget(background);
    return SS_BACKGROUND_FAILED;
}

void ss_background_ready(struct ss_background *background)
{
    if (background->pid_path == NULL || background->ready_fd < 0)
        return;
    /* A parent that is gone has no use for the word. */
    if (write(background->ready_fd, "", 1) != 1)
        errno = 0;
    close(background->ready_fd);
    background->ready_fd = -1;
}

void ss_background_leave(struct ss_background *background)
{
    if (background->pid_path == NULL)
        return;
    remove_file(background);
    forget(background);
}
