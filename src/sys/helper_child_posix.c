/* A child of the helper: from its definition to the program that it executes. */
#include "sys/helper_internal.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <fcntl.h>
#include <limits.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif
#include <sys/wait.h>
#include <unistd.h>

#include "sys/process.h"

#define SEARCH_DEFAULT "/usr/local/bin:/usr/bin:/bin"

extern char **environ;

static size_t count_texts(const char *text, size_t len)
{
    size_t count = 0;

    for (size_t i = 0; i < len; i++)
        count += text[i] == '\0';
    return count;
}

struct ss_definition *ss_definition_new(const struct ss_helper_request *request, const char *text)
{
    size_t len = request->text_len;
    uint64_t wanted = (uint64_t)request->argc + request->envc;
    struct ss_definition *definition;

    for (uint32_t bit = SS_TEXT_FILE; bit <= SS_TEXT_DIRECTORY; bit <<= 1)
        wanted += (request->given & bit) != 0;
    if (len == 0 || len > SS_HELPER_TEXT_MAX || text[len - 1] != '\0' || request->argc == 0 ||
        count_texts(text, len) != wanted)
        return NULL;
    definition = malloc(sizeof *definition + len);
    if (definition == NULL)
        return NULL;
    definition->request = *request;
    memcpy(definition->text, text, len);
    return definition;
}

void ss_definition_free(struct ss_definition *definition)
{
    volatile char *p;

    if (definition == NULL)
        return;
    p = definition->text;
    for (size_t i = 0; i < definition->request.text_len; i++)
        p[i] = '\0';
    free(definition);
}

/* What the texts stand for. */
struct prepared {
    char **argv;
    const char *file, *search, *directory;
};

static char *next(char **text)
{
    char *one = *text;

    *text += strlen(one) + 1;
    return one;
}

/* "NAME=value" is put, "NAME" taken out. */
static void change_environment(char *text)
{
    if (strchr(text, '=') != NULL)
        putenv(text);
    else
        unsetenv(text);
}

/* Of the child's own copy of the definition, which lives as long as its environment does. */
static bool prepare(struct prepared *prepared, struct ss_definition *definition)
{
    const struct ss_helper_request *request = &definition->request;
    char *text = definition->text;

    prepared->argv = calloc((size_t)request->argc + 1, sizeof *prepared->argv);
    if (prepared->argv == NULL)
        return false;
    for (uint32_t i = 0; i < request->argc; i++)
        prepared->argv[i] = next(&text);
    prepared->search = getenv("PATH");
    for (uint32_t i = 0; i < request->envc; i++)
        change_environment(next(&text));
    prepared->file = request->given & SS_TEXT_FILE ? next(&text) : prepared->argv[0];
    if (request->given & SS_TEXT_SEARCH)
        prepared->search = next(&text);
    if (request->given & SS_TEXT_DIRECTORY)
        prepared->directory = next(&text);
    return true;
}

static bool wire_streams(const int descriptors[3])
{
    int null = -1;

    /* What was passed lies above the three, for these are always open in the helper. */
    for (int i = 0; i < 3; i++)
        if (descriptors[i] >= 0 && dup2(descriptors[i], i) < 0)
            return false;
    if (descriptors[0] >= 0)
        return true;
    null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (null < 0 || dup2(null, 0) < 0)
        return false;
    close(null);
    return true;
}

static void reset_signals(void)
{
    sigset_t none;

    for (int number = 1; number < NSIG; number++)
        signal(number, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Of several folders the first that has it; a file there that may not be executed is remembered. */
static int execute_found(const struct prepared *prepared)
{
    const char *folder = prepared->search != NULL ? prepared->search : SEARCH_DEFAULT;
    char path[PATH_MAX];
    int error = ENOENT;

    while (true) {
        size_t len = strcspn(folder, ":");
        int used = len == 0 ? snprintf(path, sizeof path, "./%s", prepared->file)
                            : snprintf(path, sizeof path, "%.*s/%s", (int)(len % PATH_MAX), folder,
                                       prepared->file);

        if (used > 0 && (size_t)used < sizeof path) {
            execve(path, prepared->argv, environ);
            if (errno == EACCES)
                error = EACCES;
            else if (errno != ENOENT && errno != ENOTDIR)
                return errno;
        }
        if (folder[len] == '\0')
            return error;
        folder += len + 1;
    }
}

static int become(struct ss_definition *definition, const int descriptors[3], const char *user,
                  pid_t helper)
{
    struct prepared prepared = {0};
    const char *error_text;

    setpgid(0, 0);
    if (!prepare(&prepared, definition))
        return ENOMEM;
    if (!wire_streams(descriptors))
        return errno;
    if (user != NULL && ss_process_switch_user(user, 0, &error_text) != SS_OK)
        return EPERM;
        /* After the user is switched, which would undo both. */
#ifdef __linux__
    if (prctl(PR_SET_PDEATHSIG, SIGTERM) != 0)
        return errno;
#endif
    if (getppid() != helper)
        return ECHILD;
    /* A folder that can't be entered is no reason not to start. */
    if (prepared.directory != NULL && chdir(prepared.directory) != 0)
        errno = 0;
    reset_signals();
    if (strchr(prepared.file, '/') == NULL)
        return prepared.file[0] != '\0' ? execute_found(&prepared) : ENOENT;
    execve(prepared.file, prepared.argv, environ);
    return errno;
}

int ss_definition_execute(const struct ss_definition *definition, const int descriptors[3],
                          const char *user, pid_t *pid)
{
    pid_t helper = getpid(), child;
    int ends[2], error = 0;
    ssize_t got;

    /* What closes by itself when the program is executed tells that it was. */
    if (pipe(ends) != 0)
        return errno;
    fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    fcntl(ends[1], F_SETFD, FD_CLOEXEC);
    child = fork();
    if (child == 0) {
        error = become((struct ss_definition *)(uintptr_t)definition, descriptors, user, helper);
        if (write(ends[1], &error, sizeof error) != (ssize_t)sizeof error)
            error = EIO;
        _exit(127);
    }
    if (child < 0)
        error = errno;
    close(ends[1]);
    if (child > 0) {
        setpgid(child, child);
        do
            got = read(ends[0], &error, sizeof error);
        while (got < 0 && errno == EINTR);
        if (got != 0) {
            error = got == (ssize_t)sizeof error && error != 0 ? error : EIO;
            while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
                ;
        } else {
            error = 0;
        }
    }
    close(ends[0]);
    *pid = error == 0 ? child : 0;
    return error;
}
