/* Methods and keys out of the configuration. */
#include "service/keying.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/base64.h"
#include "base/log.h"
#include "crypto/kdf.h"
#include "crypto/secret.h"
#include "service/plugin.h"
#include "service/users.h"

/* So long sessions may deliver what they were granted before a limit was reached. */
#define GRACE_S 3

#define KEY_TEXT_MAX 1024 /* bytes of a key that are looked at; a method uses at most 32 */

enum ss_status ss_shared_init(struct ss_shared *shared, const struct ss_config *config, bool udp)
{
    if (shared->salts == NULL)
        shared->salts = ss_salt_memory_new(config->salt_memory);
    if (shared->packet_salts == NULL && udp)
        shared->packet_salts = ss_salt_memory_new(config->salt_memory);
    return shared->salts != NULL && (!udp || shared->packet_salts != NULL) ? SS_OK : SS_ERR_MEMORY;
}

void ss_shared_clear(struct ss_shared *shared)
{
    ss_salt_memory_free(shared->salts);
    ss_salt_memory_free(shared->packet_salts);
    ss_salt_pool_free(shared->salt_pool);
    *shared = (struct ss_shared){0};
}

void ss_port_use_hold(struct ss_port_use *use)
{
    atomic_fetch_add_explicit(&use->holders, 1, memory_order_relaxed);
}

void ss_port_use_release(void *owner)
{
    struct ss_port_use *use = owner;

    if (use != NULL && atomic_fetch_sub_explicit(&use->holders, 1, memory_order_acq_rel) == 1)
        free(use);
}

static struct ss_users *users_before(const struct ss_keying_options *options)
{
    return options->before != NULL ? ss_profile_hold_users(options->before->profile) : NULL;
}

static enum ss_status make_users(struct ss_users **users, const struct ss_keying_options *options,
                                 struct ss_key_problem *problem)
{
    const struct ss_config_server *server = options->server;
    struct ss_users *before = users_before(options);
    enum ss_status status = ss_service_users_new(users, options->method, server->identities,
                                                 server->identity_count, before, &problem->fault);

    ss_users_release(before);
    problem->of_user = problem->fault.kind != SS_KEY_HAS_NO_CHAINS;
    return status;
}

static enum ss_status make_2022(struct ss_profile **profile,
                                const struct ss_keying_options *options,
                                struct ss_profile_options *how, struct ss_key_problem *problem)
{
    const struct ss_config_server *server = options->server;
    const char *text = server->key != NULL ? server->key : server->password;
    struct ss_shared *shared = options->shared;
    enum ss_status status = SS_OK;

    if (shared->salt_pool == NULL)
        shared->salt_pool = ss_salt_pool_new(options->config->salt_pool);
    if (shared->salt_pool == NULL)
        return SS_ERR_MEMORY;
    if (server->identity_count != 0 || options->of_users)
        status = make_users(&how->users, options, problem);
    if (status != SS_OK)
        return status;
    how->password = (struct ss_view){(const uint8_t *)text, strlen(text)};
    how->salt_pool = shared->salt_pool;
    how->fault = &problem->fault;
    status = ss_profile_new(profile, how);
    if (status == SS_OK && options->config->program == SS_PROGRAM_SERVER &&
        ss_profile_identity_count(*profile) != 0) {
        problem->fault = (struct ss_key_fault){.kind = SS_KEY_OF_SERVER_IS_CHAIN,
                                               .needed = 1,
                                               .given = ss_profile_identity_count(*profile) + 1};
        ss_profile_release(*profile);
        *profile = NULL;
        status = SS_ERR_KEY;
    }
    problem->of_user = problem->fault.kind == SS_KEY_IS_THE_SERVERS;
    ss_users_release(how->users);
    return status;
}

static enum ss_status make_older(struct ss_profile **profile,
                                 const struct ss_keying_options *options,
                                 struct ss_profile_options *how, struct ss_key_problem *problem)
{
    const struct ss_config_server *server = options->server;
    const struct ss_method *method = options->method;
    uint8_t key[KEY_TEXT_MAX];
    size_t key_len = 0;
    enum ss_status status = SS_OK;

    if (server->identity_count != 0 || options->of_users) {
        problem->fault.kind = SS_KEY_HAS_NO_CHAINS;
        return SS_ERR_KEY;
    }
    if (server->key != NULL) {
        status = ss_base64_decode(key, sizeof key, &key_len, server->key, strlen(server->key),
                                  SS_BASE64_EITHER);
        if (status != SS_OK || key_len < method->key_len) {
            problem->is_short = true;
            problem->is_base64 = status == SS_OK;
            problem->len = key_len;
            status = SS_ERR_KEY;
        }
        how->key = (struct ss_view){key, key_len};
    } else {
        /* An empty password is one too; it is a key like that of any other. */
        const char *password = server->password != NULL ? server->password : "";

        ss_kdf_password(key, method->key_len, password, strlen(password));
        how->key = (struct ss_view){key, method->key_len};
    }
    if (status == SS_OK)
        status = ss_profile_new(profile, how);
    ss_wipe(key, sizeof key);
    return status;
}

/* Whose users come and go, and which list is to take the place of the one before. */
static void compare_users(struct ss_keying *keying, struct ss_users *before, bool kept)
{
    struct ss_users *list = ss_profile_hold_users(keying->profile);

    if (list == NULL)
        return;
    ss_service_users_compare(before, list, &keying->users_added, &keying->users_removed);
    if (kept && !ss_service_users_alike(before, list))
        keying->users = list;
    else
        ss_users_release(list);
}

/* With the same method and key the profile before stays, so that its sessions do. */
static void keep_what_stays(struct ss_keying *keying, const struct ss_keying_options *options)
{
    const struct ss_keying *before = options->before;
    struct ss_users *list = users_before(options);
    bool kept = before != NULL && ss_profile_is_same(before->profile, keying->profile);

    compare_users(keying, list, kept);
    ss_users_release(list);
    if (!kept)
        return;
    ss_profile_hold(before->profile);
    ss_profile_release(keying->profile);
    keying->profile = before->profile;
}

static enum ss_status find_use(struct ss_keying *keying, const struct ss_keying_options *options)
{
    if (options->before != NULL) {
        keying->use = options->before->use;
        ss_port_use_hold(keying->use);
        return SS_OK;
    }
    keying->use = calloc(1, sizeof *keying->use);
    if (keying->use == NULL)
        return SS_ERR_MEMORY;
    atomic_init(&keying->use->holders, 1);
    return SS_OK;
}

enum ss_status ss_keying_make(struct ss_keying *keying, const struct ss_keying_options *options,
                              struct ss_key_problem *problem)
{
    struct ss_shared *shared = options->shared;
    struct ss_profile_options how = {.method = options->method,
                                     .salts = shared->salts,
                                     .packet_salts = shared->packet_salts,
                                     /* A plugin may cut a stream anew. */
                                     .first_read_may_be_short =
                                         ss_plugin_carries(options->server, false)};
    enum ss_status status;

    *keying = (struct ss_keying){0};
    *problem = (struct ss_key_problem){0};
    status = find_use(keying, options);
    if (status == SS_OK)
        status = options->method->family == SS_METHODS_2022
                     ? make_2022(&keying->profile, options, &how, problem)
                     : make_older(&keying->profile, options, &how, problem);
    if (status != SS_OK) {
        ss_keying_clear(keying);
        return status;
    }
    keep_what_stays(keying, options);
    return SS_OK;
}

void ss_keying_clear(struct ss_keying *keying)
{
    ss_profile_release(keying->profile);
    ss_port_use_release(keying->use);
    ss_users_release(keying->users);
    *keying = (struct ss_keying){0};
}

void ss_keying_set_limits(const struct ss_keying *keying, const struct ss_config_server *server)
{
    struct ss_users *users = ss_profile_hold_users(keying->profile);

    ss_service_set_limits(&keying->use->limiter, &server->limits);
    if (users != NULL)
        ss_service_users_set_limits(users, server->identities);
    ss_users_release(users);
}

/* Sessions that want to go on end by themselves, behind what was granted to them. A while later
 * these are idle ones, or ones whose peer takes nothing. */
static bool has_to_end(struct ss_limiter *limiter, int64_t now_s)
{
    if (!ss_limiter_is_active(limiter) || ss_limiter_reason(limiter, now_s) == SS_LIMIT_NONE) {
        limiter->reached_s = 0;
        return false;
    }
    if (limiter->reached_s == 0)
        limiter->reached_s = now_s;
    return now_s - limiter->reached_s >= GRACE_S && atomic_load(&limiter->connections) != 0;
}

static void end_sessions(struct ss_engine *engine, const struct ss_keying *keying, const void *user)
{
    const struct ss_sessions_of which = {.profile = keying->profile, .user = user};

    if (ss_engine_end_sessions(engine, &which) != SS_OK)
        ss_log_error("sessions above a limit can't be ended: %s", ss_status_text(SS_ERR_MEMORY));
}

void ss_keying_enforce(const struct ss_keying *keying, struct ss_engine *engine)
{
    int64_t now_s = (int64_t)time(NULL);
    struct ss_users *users;

    if (keying->use == NULL)
        return;
    if (has_to_end(&keying->use->limiter, now_s)) {
        end_sessions(engine, keying, NULL);
        return;
    }
    users = ss_profile_hold_users(keying->profile);
    for (size_t i = 0; users != NULL && i < ss_users_count(users); i++) {
        struct ss_user_counters *counters = ss_users_get(users, i)->tag;

        if (has_to_end(&counters->limiter, now_s))
            end_sessions(engine, keying, counters);
    }
    ss_users_release(users);
}
