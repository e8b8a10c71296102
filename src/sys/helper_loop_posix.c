/* The helper's own process: its children, and the requests that it serves. */
#include "sys/helper_internal.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef __linux__
#include <sys/prctl.h>
#endif
#include <sys/wait.h>
#include <unistd.h>

#define GRACE_MS     1000 /* between SIGTERM and SIGKILL */
#define GIVE_UP_MS   3000 /* of the helper's end: what the kernel does not let go is left behind */
#define TICK_MS      20   /* of looking at what is ending */
#define CHILDREN_MAX 65536

struct child {
    uint32_t id;
    pid_t pid; /* and its group; 0: does not run */
    bool leader_gone;
    bool group_lives; /* of a leader that is gone, as last seen */
    int how;          /* as waitpid tells */
    uint64_t started_ms, ended_ms;
    uint64_t kill_ms;                 /* when SIGKILL is due; 0: it is not ending */
    bool privileged;                  /* defined before the seal */
    bool leaves;                      /* what is left of its group is meant to stay */
    struct ss_definition *definition; /* NULL: not kept */
};

struct helper {
    int fd;
    char *const *paths;
    size_t path_count;
    const char *user;
    bool sealed;
    struct child *children; /* in no order */
    size_t count, room;
    char message[sizeof(struct ss_helper_request) + SS_HELPER_TEXT_MAX];
};

static uint64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* A program that is gone is seen by the next look at the socket. */
static void tell(const struct helper *helper, const struct ss_helper_notice *notice, int descriptor)
{
    (void)ss_wire_send(helper->fd, notice, sizeof *notice, NULL, 0, &descriptor, descriptor >= 0,
                       true);
}

static struct child *find(struct helper *helper, uint32_t id)
{
    for (size_t i = 0; i < helper->count; i++)
        if (helper->children[i].id == id)
            return &helper->children[i];
    return NULL;
}

/* The last one takes its place. */
static void drop(struct helper *helper, struct child *child)
{
    ss_definition_free(child->definition);
    *child = helper->children[--helper->count];
}

static struct child *add(struct helper *helper, uint32_t id)
{
    struct child *child;

    if (helper->count == helper->room) {
        size_t room = helper->room != 0 ? helper->room * 2 : 16;
        struct child *grown;

        if (room > CHILDREN_MAX)
            return NULL;
        grown = realloc(helper->children, room * sizeof *grown);
        if (grown == NULL)
            return NULL;
        helper->children = grown;
        helper->room = room;
    }
    child = &helper->children[helper->count++];
    memset(child, 0, sizeof *child);
    child->id = id;
    child->privileged = !helper->sealed;
    return child;
}

/* The descriptors that came along, each at its place. False when they are not as many as said. */
static bool place(int placed[3], uint32_t mask, const int *descriptors, size_t count)
{
    size_t used = 0;

    for (int i = 0; i < 3; i++) {
        placed[i] = -1;
        if ((mask >> i & 1) != 0) {
            if (used == count)
                return false;
            placed[i] = descriptors[used++];
        }
    }
    return used == count;
}

static int run_child(struct helper *helper, struct child *child,
                     const struct ss_definition *definition, const int placed[3])
{
    int error = ss_definition_execute(definition, placed, child->privileged ? NULL : helper->user,
                                      &child->pid);

    child->leader_gone = child->group_lives = false;
    child->kill_ms = 0;
    child->started_ms = now_ms();
    return error;
}

static void tell_started(const struct helper *helper, uint32_t id, int error, pid_t pid)
{
    const struct ss_helper_notice notice = {
        .kind = SS_NOTICE_STARTED, .id = id, .error = error, .pid = pid};

    tell(helper, &notice, -1);
}

static void start(struct helper *helper, const struct ss_helper_request *request, const char *text,
                  const int placed[3])
{
    struct ss_definition *definition = ss_definition_new(request, text);
    struct child *child = NULL;
    pid_t pid = 0;
    int error = ENOMEM;

    if (find(helper, request->id) != NULL)
        error = EEXIST;
    else if (definition != NULL)
        child = add(helper, request->id);
    if (child != NULL) {
        error = run_child(helper, child, definition, placed);
        pid = child->pid;
        child->leaves = request->leaves != 0;
        if (request->keep != 0) {
            child->definition = definition;
            definition = NULL;
        } else if (error != 0) {
            drop(helper, child);
        }
    }
    ss_definition_free(definition);
    tell_started(helper, request->id, error, pid);
}

static void start_again(struct helper *helper, uint32_t id, const int placed[3])
{
    struct child *child = find(helper, id);
    int error = ESRCH;

    if (child != NULL && child->definition != NULL)
        error = child->pid != 0 ? EEXIST : run_child(helper, child, child->definition, placed);
    tell_started(helper, id, error, error == 0 ? child->pid : 0);
}

static void stop(struct child *child)
{
    if (child == NULL || child->pid == 0 || child->kill_ms != 0)
        return;
    kill(-child->pid, SIGTERM);
    child->kill_ms = now_ms() + GRACE_MS;
}

static void forget(struct helper *helper, uint32_t id)
{
    struct child *child = find(helper, id);

    if (child == NULL)
        return;
    ss_definition_free(child->definition);
    child->definition = NULL;
    if (child->pid == 0)
        drop(helper, child);
}

static void open_again(const struct helper *helper, const struct ss_helper_request *request)
{
    struct ss_helper_notice notice = {.kind = SS_NOTICE_OPENED, .id = request->id, .error = EINVAL};
    int fd = -1;

    if (request->index < helper->path_count) {
        fd = ss_helper_open_path(helper->paths[request->index]);
        notice.error = fd < 0 ? errno : 0;
    }
    tell(helper, &notice, fd);
    if (fd >= 0)
        close(fd);
}

static void bind_port(const struct helper *helper, const struct ss_helper_request *request)
{
    int fd = ss_helper_bind_socket(&request->address, request->bind);
    const struct ss_helper_notice notice = {
        .kind = SS_NOTICE_BOUND, .id = request->id, .error = fd < 0 ? errno : 0};

    tell(helper, &notice, fd);
    if (fd >= 0)
        close(fd);
}

/* False when it is no request. */
static bool serve(struct helper *helper, size_t len, const int *descriptors, size_t count)
{
    struct ss_helper_request request;
    const char *text = helper->message + sizeof request;
    int placed[3];

    if (len < sizeof request)
        return false;
    memcpy(&request, helper->message, sizeof request);
    if (len - sizeof request != (request.kind == SS_REQUEST_START ? request.text_len : 0) ||
        !place(placed, request.descriptors, descriptors, count))
        return false;
    switch (request.kind) {
    case SS_REQUEST_START:
        start(helper, &request, text, placed);
        return true;
    case SS_REQUEST_START_AGAIN:
        start_again(helper, request.id, placed);
        return true;
    case SS_REQUEST_STOP:
        stop(find(helper, request.id));
        return true;
    case SS_REQUEST_FORGET:
        forget(helper, request.id);
        return true;
    case SS_REQUEST_OPEN:
        open_again(helper, &request);
        return true;
    case SS_REQUEST_BIND:
        bind_port(helper, &request);
        return true;
    case SS_REQUEST_SEAL:
        helper->sealed = true;
        return true;
    default:
        return false;
    }
}

/* What waits at the socket. False when the program is gone. */
static bool serve_all(struct helper *helper)
{
    while (true) {
        int descriptors[SS_WIRE_DESCRIPTORS_MAX];
        size_t len = 0, count;
        enum ss_wire_result result = ss_wire_receive(
            helper->fd, helper->message, sizeof helper->message, &len, descriptors, &count);
        volatile char *p = helper->message;
        bool good;

        if (result != SS_WIRE_OK)
            return result == SS_WIRE_NONE;
        good = serve(helper, len, descriptors, count);
        for (size_t i = 0; i < count; i++)
            close(descriptors[i]);
        for (size_t i = 0; i < len; i++)
            p[i] = '\0'; /* a plugin's options may hold a password */
        if (!good)
            return false;
    }
}

/* Takes every end that there is; those of orphans mean nothing. True while there are children. */
static bool reap(struct helper *helper)
{
    while (true) {
        int how;
        pid_t pid = waitpid(-1, &how, WNOHANG);

        if (pid < 0 && errno == EINTR)
            continue;
        if (pid <= 0)
            return pid == 0;
        for (size_t i = 0; i < helper->count; i++) {
            struct child *child = &helper->children[i];

            if (child->pid != pid || child->leader_gone)
                continue;
            child->leader_gone = true;
            child->how = how;
            child->ended_ms = now_ms();
            break;
        }
    }
}

static void note_group(void *owner, pid_t pid, pid_t parent, pid_t group)
{
    struct helper *helper = owner;

    (void)pid;
    (void)parent;
    for (size_t i = 0; i < helper->count; i++)
        if (helper->children[i].pid == group && helper->children[i].leader_gone &&
            !helper->children[i].leaves)
            helper->children[i].group_lives = true;
}

static void tell_ended(const struct helper *helper, const struct child *child)
{
    uint64_t ran_ms = child->ended_ms - child->started_ms;
    const struct ss_helper_notice notice = {
        .kind = SS_NOTICE_ENDED,
        .id = child->id,
        .pid = child->pid,
        .exit_code = WIFEXITED(child->how) ? WEXITSTATUS(child->how) : 0,
        .signal = WIFSIGNALED(child->how) ? WTERMSIG(child->how) : 0,
        .ran_ms = ran_ms < UINT32_MAX ? (uint32_t)ran_ms : UINT32_MAX};

    tell(helper, &notice, -1);
}

/* Brings what is ending forward. True when it is to be looked at again. */
static bool advance(struct helper *helper)
{
    uint64_t now = now_ms();
    bool again = false, look = false;

    for (size_t i = 0; i < helper->count; i++) {
        helper->children[i].group_lives = false;
        look |= helper->children[i].leader_gone && !helper->children[i].leaves;
    }
    if (look)
        (void)ss_process_visit(note_group, helper);
    for (size_t i = 0; i < helper->count;) {
        struct child *child = &helper->children[i];

        if (child->leader_gone && !child->group_lives) {
            tell_ended(helper, child);
            child->pid = 0;
            child->leader_gone = false;
            child->kill_ms = 0;
            if (child->definition == NULL) {
                drop(helper, child);
                continue;
            }
        }
        if (child->leader_gone)
            stop(child); /* the others of its group */
        if (child->kill_ms != 0) {
            again = true;
            if (now >= child->kill_ms) {
                kill(-child->pid, SIGKILL);
                child->kill_ms = now + GRACE_MS;
            }
        }
        i++;
    }
    return again;
}

/* What the end of all looks at. */
struct sweep {
    const struct helper *helper;
    int signal; /* the one that is due */
    bool any;
};

static bool is_group(const struct helper *helper, pid_t group)
{
    for (size_t i = 0; group != 0 && i < helper->count; i++)
        if (helper->children[i].pid == group)
            return true;
    return false;
}

/* Groups have had their SIGTERM; orphans that have left theirs are met one by one. */
static void sweep_one(void *owner, pid_t pid, pid_t parent, pid_t group)
{
    struct sweep *sweep = owner;
    bool ours = is_group(sweep->helper, group);

    if (!ours && parent != getpid())
        return;
    sweep->any = true;
    if (!ours || sweep->signal == SIGKILL)
        kill(pid, sweep->signal);
}

static void signal_groups(const struct helper *helper, int number)
{
    for (size_t i = 0; i < helper->count; i++)
        if (helper->children[i].pid != 0 && !helper->children[i].leader_gone)
            kill(-helper->children[i].pid, number);
}

static void end_all(struct helper *helper)
{
    const struct timespec tick = {.tv_nsec = 10000000};
    uint64_t begin = now_ms();
    struct sweep sweep = {.helper = helper, .signal = SIGTERM};
    sigset_t none;

    sigemptyset(&none);
    signal_groups(helper, SIGTERM);
    while (now_ms() - begin < GIVE_UP_MS) {
        bool children = reap(helper);

        sweep.any = false;
        (void)ss_process_visit(sweep_one, &sweep);
        if (!children && !sweep.any)
            return;
        if (sweep.signal == SIGKILL)
            signal_groups(helper, SIGKILL);
        else if (now_ms() - begin >= GRACE_MS)
            sweep.signal = SIGKILL;
        ppoll(NULL, 0, &tick, &none); /* the end of a child cuts it short */
    }
}

static void on_child(int number)
{
    (void)number;
}

/* A terminal's interrupt and a service manager's stop are for the program, whose end tells us. */
static void set_signals(void)
{
    static const int ignored[] = {SIGINT,  SIGTERM, SIGHUP,  SIGQUIT, SIGPIPE, SIGUSR1,
                                  SIGUSR2, SIGALRM, SIGTSTP, SIGTTIN, SIGTTOU};
    struct sigaction action = {.sa_handler = on_child};
    sigset_t mask;

    for (size_t i = 0; i < sizeof ignored / sizeof ignored[0]; i++)
        signal(ignored[i], SIG_IGN);
    sigaction(SIGCHLD, &action, NULL);
    sigemptyset(&mask);
    sigaddset(&mask, SIGCHLD);
    sigprocmask(SIG_SETMASK, &mask, NULL);
}

_Noreturn void ss_helper_run(int fd, char *const *paths, size_t path_count, const char *user)
{
    static struct helper helper;
    struct pollfd waited = {.fd = fd, .events = POLLIN};
    const struct timespec tick = {.tv_nsec = TICK_MS * 1000000L};
    sigset_t none;
    bool again = false;

    helper = (struct helper){.fd = fd, .paths = paths, .path_count = path_count, .user = user};
    set_signals();
#ifdef __linux__
    prctl(PR_SET_NAME, "ss-helper");
    prctl(PR_SET_CHILD_SUBREAPER, 1);
#endif
    sigemptyset(&none);
    while (true) {
        if (ppoll(&waited, 1, again ? &tick : NULL, &none) < 0 && errno != EINTR)
            break;
        /* Seen again below when nothing was there. */
        if (!serve_all(&helper))
            break;
        (void)reap(&helper);
        again = advance(&helper);
    }
    end_all(&helper);
    _exit(0);
}
