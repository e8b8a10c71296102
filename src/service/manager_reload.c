/* SIGHUP: ports of the configuration that come, change and go, one after the other as commands do.
 */
#include "service/manager_internal.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include <unistd.h>

#include "crypto/secret.h"
#include "sys/read_file.h"

#define NAMES_SIZE   512
#define OPEN_WAIT_MS 2000

struct ss_manager_reload {
    struct ss_config config; /* the new one */
    size_t next;             /* of its servers */
    uint16_t gone_next;      /* of the numbers that are looked at for ports that have gone */
    bool gone_left;
    bool under_way;
    bool stepping; /* on the stack */
    bool again;    /* asked for meanwhile */
    size_t set, removed, failed;
};

/* The file of the configuration, opened with the rights of the start; -1: it was not to be had. */
static int open_with_rights(struct ss_manager *manager)
{
    struct ss_notice notice;

    if (ss_helper_open(manager->helper, SS_OPEN_ID, 0) != SS_OK)
        return -1;
    while (ss_helper_wait(manager->helper, &notice, OPEN_WAIT_MS) == SS_OK) {
        if (notice.id == SS_OPEN_ID)
            return notice.error == 0 ? notice.descriptor : -1;
        manager->backend->on_notice(manager, &notice);
    }
    return -1;
}

/* Reading blanks secrets out of the words, so it gets words of its own. */
static bool read_configuration(struct ss_manager *manager, struct ss_config *config)
{
    struct ss_handed_file handed = {.path = manager->config_path, .fd = -1};
    struct ss_words words;
    char **argv = NULL;
    bool good = false;

    if (manager->config_path != NULL && manager->config->user != NULL) {
        handed.fd = open_with_rights(manager);
        ss_file_take_handed(&handed, 1);
    }
    if (ss_words_keep(&words, manager->words->count, manager->words->list) == SS_OK)
        argv = malloc(((size_t)words.count + 1) * sizeof *argv);
    if (argv != NULL) {
        memcpy(argv, words.list, ((size_t)words.count + 1) * sizeof *argv);
        good = ss_config_read_again(config, SS_PROGRAM_MANAGER, words.count, argv, ss_file_read);
        free(argv);
    }
    ss_words_forget(&words);
    ss_file_take_handed(NULL, 0);
    if (handed.fd >= 0)
        close(handed.fd);
    return good;
}

/* Whether a port is as the configuration has it, whatever it has used. */
static bool is_same(const struct ss_port_spec *port, const struct ss_port_spec *configured)
{
    struct ss_port_spec copy = {0};
    char *a = NULL, *b = ss_record_text(SS_RECORD_ADD, configured);
    bool same;

    if (ss_port_spec_copy(&copy, port) == SS_OK) {
        ss_port_spec_forget_used(&copy);
        a = ss_record_text(SS_RECORD_ADD, &copy);
    }
    ss_port_spec_clear(&copy);
    same = a != NULL && b != NULL && strcmp(a, b) == 0;

    if (a != NULL)
        ss_wipe(a, strlen(a));
    if (b != NULL)
        ss_wipe(b, strlen(b));
    free(a);
    free(b);
    return same;
}

static bool is_configured(const struct ss_config *config, uint16_t port)
{
    for (size_t i = 0; i < config->server_count; i++)
        if (config->servers[i].addresses[0].port == port)
            return true;
    return false;
}

/* The next of the ports that are no longer in the configuration. True: it is on its way out. */
static bool remove_next(struct ss_manager *manager)
{
    struct ss_manager_reload *reload = manager->reload;

    while (reload->gone_left) {
        const struct ss_managed *port = manager->by_port[reload->gone_next];

        reload->gone_left = reload->gone_next != UINT16_MAX;
        reload->gone_next++;
        if (port == NULL || !port->configured || is_configured(&reload->config, port->spec.port))
            continue;
        reload->removed++;
        ss_manager_remove_own(manager, port);
        return true;
    }
    return false;
}

/* The next that is new, or another than before. True: it is on its way. */
static bool set_next(struct ss_manager *manager)
{
    struct ss_manager_reload *reload = manager->reload;

    while (reload->next < reload->config.server_count) {
        const struct ss_port_spec spec =
            ss_manager_configured_spec(&reload->config.servers[reload->next++]);
        const struct ss_managed *port = ss_managed_find(manager, spec.port);
        struct ss_reason reason;

        if (port != NULL && port->configured && is_same(&port->spec, &spec))
            continue;
        if (!ss_manager_check_spec(manager->config, &spec, &reason)) {
            ss_log_error("port %u is not changed: %s", spec.port, reason.text);
            reload->failed++;
            continue;
        }
        reload->set++;
        if (ss_manager_set_own(manager, &spec))
            return true;
        ss_log_error("port %u is not changed: %s", spec.port, ss_status_text(SS_ERR_MEMORY));
    }
    return false;
}

void ss_manager_go_on_reloading(struct ss_manager *manager)
{
    struct ss_manager_reload *reload = manager->reload;
    bool left = true;

    if (reload == NULL || !reload->under_way || reload->stepping)
        return;
    /* A step may be over at once. */
    reload->stepping = true;
    while (left && ss_manager_is_free(manager))
        left = remove_next(manager) || set_next(manager);
    reload->stepping = false;
    if (left)
        return;
    reload->under_way = false;
    ss_config_free(&reload->config);
    ss_log_info("reloaded: ports: %zu set, %zu removed, %zu refused", reload->set, reload->removed,
                reload->failed);
    if (reload->again)
        ss_manager_begin_reload(manager);
    else
        ss_manager_watch_socket(manager);
}

bool ss_manager_is_reloading(const struct ss_manager *manager)
{
    return manager->reload != NULL && manager->reload->under_way;
}

void ss_manager_begin_reload(struct ss_manager *manager)
{
    struct ss_manager_reload *reload = manager->reload;
    struct ss_config config;
    char fixed[NAMES_SIZE] = "";

    if (reload == NULL)
        reload = manager->reload = calloc(1, sizeof *reload);
    if (reload == NULL)
        return;
    reload->again = reload->under_way;
    if (reload->under_way)
        return;
    if (!read_configuration(manager, &config)) {
        ss_log_error("not reloaded: what was in force stays");
        return;
    }
    if (ss_config_keep_fixed(&config, manager->config, fixed, sizeof fixed) == SS_OK &&
        fixed[0] != '\0')
        ss_log_warn("a restart is needed for what was changed of: %s", fixed);
    *reload = (struct ss_manager_reload){.config = config, .gone_left = true, .under_way = true};
    /* What it reads itself, the access control list, it reads again too. */
    if (manager->backend == &ss_backend_child)
        ss_child_signal(manager, SIGHUP);
    ss_manager_go_on_reloading(manager);
}

void ss_manager_end_reload(struct ss_manager *manager)
{
    if (manager->reload == NULL)
        return;
    if (manager->reload->under_way)
        ss_config_free(&manager->reload->config);
    free(manager->reload);
    manager->reload = NULL;
}
