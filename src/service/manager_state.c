/* What ss-manager writes down so that its ports outlive it. */
#include "service/manager_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "crypto/secret.h"

#define STATE_NAME ".ss-manager.state"

/* More than all ports with very many users come to. */
#define STATE_MAX ((size_t)1 << 30)

/* A file this small is not worth writing anew; a larger one is when half of it is of the past. */
#define REWRITE_LEAST ((size_t)1 << 20)

static void log_failure(struct ss_manager *manager, const char *error_text)
{
    ss_log_limited(&manager->journal_limit, uv_now(&manager->loop), SS_LOG_ERROR,
                   "%s: %s: ports that are added now are lost should the manager end",
                   manager->journal.path != NULL ? manager->journal.path : STATE_NAME, error_text);
}

static void free_text(char *text, size_t len)
{
    if (text != NULL)
        ss_wipe(text, len);
    free(text);
}

/* A port of the state file; one of the configuration comes before it. */
static void take_port(struct ss_manager *manager, struct ss_port_spec *spec)
{
    const struct ss_managed *known = ss_managed_find(manager, spec->port);

    if ((known == NULL || !known->configured) && ss_managed_put(manager, spec) == NULL)
        ss_log_error("port %u: %s", spec->port, ss_status_text(SS_ERR_MEMORY));
}

static void take_users(struct ss_managed *port, struct ss_record *record)
{
    struct ss_config_server *change = &record->spec.server;

    for (size_t i = 0; i < change->identity_count; i++) {
        size_t at = ss_port_user_find(&port->spec.server, change->identities[i].name);

        if (record->kind == SS_RECORD_ADD_USER) {
            if (ss_port_user_put(&port->spec.server, &change->identities[i]) != SS_OK)
                ss_log_error("port %u: %s", port->spec.port, ss_status_text(SS_ERR_MEMORY));
        } else if (at < port->spec.server.identity_count) {
            ss_port_user_drop(&port->spec.server, at);
        }
    }
    port->users_changed = true;
    port->spec.of_users = port->spec.of_users || change->identity_count != 0;
}

static void take_record(struct ss_manager *manager, struct ss_record *record, bool only_used)
{
    struct ss_managed *port = ss_managed_find(manager, record->spec.port);

    if (record->kind == SS_RECORD_USED && port != NULL)
        ss_port_spec_keep_used(&port->spec, &record->spec);
    if (only_used)
        return;
    switch (record->kind) {
    case SS_RECORD_ADD:
        take_port(manager, &record->spec);
        break;
    case SS_RECORD_REMOVE:
        if (port != NULL && !port->configured)
            ss_managed_drop(manager, port);
        break;
    case SS_RECORD_ADD_USER:
    case SS_RECORD_DEL_USER:
        if (port != NULL)
            take_users(port, record);
        break;
    default:
        break;
    }
}

/* Whether the last thing that was written is an orderly end. */
static bool ended_orderly(const char *text, size_t len)
{
    static const char end[] = "{\"end\":1}\n";
    size_t end_len = sizeof end - 1;

    return len >= end_len && memcmp(text + len - end_len, end, end_len) == 0;
}

/* `only_used`: the ports need not come again, but those of the configuration have used something.
 */
static void take_text(struct ss_manager *manager, char *text, size_t len, bool only_used)
{
    struct ss_record record;
    bool torn = false;
    size_t line = 0, bad = 0, first_bad = 0;

    while (ss_record_next(&record, &text, &len, &torn)) {
        line++;
        if (record.status == SS_OK) {
            take_record(manager, &record, only_used);
        } else {
            first_bad = bad == 0 ? line : first_bad;
            bad++;
        }
        ss_port_spec_clear(&record.spec);
    }
    if (bad != 0)
        ss_log_warn("%s: %zu lines can't be read and are left out, the first is line %zu",
                    manager->journal.path, bad, first_bad);
    if (torn)
        ss_log_warn("%s: the last line was not written whole and is left out",
                    manager->journal.path);
}

/* Users have counters; those that came in record by record get theirs here. */
static void settle(struct ss_manager *manager)
{
    for (struct ss_managed *port = manager->first; port != NULL; port = port->next) {
        size_t count = port->spec.server.identity_count;
        struct ss_use_count *uses = calloc(count + 1, sizeof *uses);

        if (uses == NULL)
            continue;
        free(port->uses);
        port->uses = uses;
        port->use_count = count;
    }
}

/* A text that grows, wiped wherever it has been. */
struct text {
    char *bytes;
    size_t len, room;
    bool failed;
};

/* Takes the line over. */
static void put_line(struct text *text, char *line)
{
    size_t len = line != NULL ? strlen(line) : 0;

    text->failed = text->failed || line == NULL;
    if (!text->failed && text->len + len > text->room) {
        size_t room = (text->len + len) * 2;
        char *grown = malloc(room);

        text->failed = grown == NULL;
        if (grown != NULL) {
            if (text->len != 0)
                memcpy(grown, text->bytes, text->len);
            free_text(text->bytes, text->len);
            text->bytes = grown;
            text->room = room;
        }
    }
    if (!text->failed) {
        memcpy(text->bytes + text->len, line, len);
        text->len += len;
    }
    free_text(line, len);
}

static bool has_quota(const struct ss_managed *port)
{
    bool any = port->spec.server.limits.quota != 0;

    for (size_t i = 0; !any && i < port->spec.server.identity_count; i++)
        any = port->spec.server.identities[i].limits.quota != 0;
    return any;
}

static struct ss_config_limits only_used(const struct ss_config_limits *limits)
{
    return (struct ss_config_limits){.quota_used = limits->quota_used,
                                     .quota_period_end = limits->quota_period_end};
}

/* The line that says what a port and its users have used of their quotas, and nothing else. */
static char *used_text(const struct ss_managed *port)
{
    const struct ss_config_server *server = &port->spec.server;
    struct ss_config_identity *users = calloc(server->identity_count + 1, sizeof *users);
    struct ss_port_spec spec = {.port = port->spec.port};
    char *text;

    if (users == NULL)
        return NULL;
    spec.server.limits = only_used(&server->limits);
    spec.server.identities = users;
    for (size_t i = 0; i < server->identity_count; i++)
        if (server->identities[i].limits.quota_used != 0)
            users[spec.server.identity_count++] =
                (struct ss_config_identity){.name = server->identities[i].name,
                                            .limits = only_used(&server->identities[i].limits)};
    text = ss_record_text(SS_RECORD_USED, &spec);
    free(users);
    return text;
}

/* The whole file, as things are now. */
static void rewrite(struct ss_manager *manager)
{
    const char *error_text = ss_status_text(SS_ERR_MEMORY);
    struct text text = {0};

    put_line(&text, ss_record_text(SS_RECORD_HEAD, NULL));
    for (const struct ss_managed *port = manager->first; port != NULL; port = port->next) {
        if (!port->configured)
            put_line(&text, ss_record_text(SS_RECORD_ADD, &port->spec));
        else if (port->users_changed && port->spec.server.identity_count != 0)
            put_line(&text, ss_record_text(SS_RECORD_ADD_USER, &port->spec));
        if (port->configured && has_quota(port))
            put_line(&text, used_text(port));
    }
    if (text.failed ||
        ss_journal_replace(&manager->journal, text.bytes, text.len, &error_text) != SS_OK)
        log_failure(manager, error_text);
    manager->journal_live = manager->journal.size;
    free_text(text.bytes, text.len);
}

bool ss_manager_load_state(struct ss_manager *manager)
{
    char path[4096];
    char *text = NULL;
    const char *error_text = "";
    enum ss_status status;
    size_t len;

    if ((size_t)snprintf(path, sizeof path, "%s/%s", manager->folder, STATE_NAME) >= sizeof path)
        return false;
    status = ss_journal_open(&manager->journal, path, &error_text);
    if (status == SS_ERR_IN_USE) {
        ss_log_error("%s: %s; another ss-manager works in this folder", path, error_text);
        return false;
    }
    if (status == SS_OK)
        status = ss_journal_read(&manager->journal, &text, STATE_MAX, &error_text);
    if (status != SS_OK) {
        /* What can't be kept is no reason not to serve. */
        ss_log_error("%s: %s: ports that are added do not outlive the manager", path, error_text);
        ss_journal_close(&manager->journal);
        return true;
    }
    len = manager->journal.size;
    take_text(manager, text, len, ended_orderly(text, len) && !manager->config->restore);
    free_text(text, len);
    settle(manager);
    rewrite(manager);
    return true;
}

/* Takes the line over. */
static void append(struct ss_manager *manager, char *text)
{
    const char *error_text = ss_status_text(SS_ERR_MEMORY);

    if (text == NULL ||
        ss_journal_append(&manager->journal, text, strlen(text), &error_text) != SS_OK)
        log_failure(manager, error_text);
    if (text != NULL)
        free_text(text, strlen(text));
    if (manager->journal.size > REWRITE_LEAST && manager->journal.size > 2 * manager->journal_live)
        rewrite(manager);
}

void ss_manager_record(struct ss_manager *manager, enum ss_record_kind kind,
                       const struct ss_port_spec *spec)
{
    if (manager->journal.fd >= 0)
        append(manager, ss_record_text(kind, spec));
}

void ss_manager_record_used(struct ss_manager *manager)
{
    for (struct ss_managed *port = manager->first; port != NULL; port = port->next) {
        if (port->used_changed && manager->journal.fd >= 0)
            append(manager, used_text(port));
        port->used_changed = false;
    }
}

void ss_manager_close_state(struct ss_manager *manager, bool orderly)
{
    if (manager->journal.fd < 0)
        return;
    ss_manager_record_used(manager);
    if (orderly)
        ss_manager_record(manager, SS_RECORD_END, NULL);
    ss_journal_close(&manager->journal);
}
