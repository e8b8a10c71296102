/* The access control list, out of a file and what is built in. */
#include "service/service_internal.h"

#include <stdlib.h>

#include "acl/acl.h"
#include "base/log.h"
#include "crypto/random.h"
#include "sys/read_file.h"

/* Bad lines that are shown one by one. */
#define SHOWN_MAX 20

struct faults {
    const char *path;
    size_t count;
};

static void on_fault(void *owner, const struct ss_acl_fault *fault)
{
    struct faults *faults = owner;

    faults->count++;
    if (faults->count > SHOWN_MAX && !fault->fatal)
        return;
    ss_log_error("%s:%zu: %s: '%s'%s", faults->path, fault->line, fault->reason, fault->line_text,
                 fault->fatal ? "; what the list is to keep out would come in" : "");
}

/* False when the program can't go on without it, or is better off with the one that it has. */
static bool read_list(char **text, size_t *len, const struct ss_config *config, bool again)
{
    enum ss_status status = ss_file_read(text, len, config->acl, SS_ACL_TEXT_MAX);

    if (status == SS_OK)
        return true;
    *text = NULL;
    ss_log_error("Invalid acl path.");
    if (config->program == SS_PROGRAM_LOCAL && config->task != SS_TASK_CHECK_CONFIG && !again) {
        ss_log_error("%s: %s; everything goes through the server", config->acl,
                     ss_status_text(status));
        return true;
    }
    ss_log_error("%s: %s", config->acl, ss_status_text(status));
    return false;
}

static bool parse(struct ss_service *service, const struct ss_view *texts, size_t count)
{
    const struct ss_config *config = service->config;
    struct faults faults = {.path = config->acl};
    struct ss_acl_counts counts;
    enum ss_status status;
    uint64_t seed;

    ss_random_bytes(&seed, sizeof seed);
    status = ss_acl_parse(&service->acl, texts, count, seed, on_fault, &faults);
    if (faults.count > SHOWN_MAX)
        ss_log_error("%s: %zu bad lines in all", config->acl, faults.count);
    if (status != SS_OK) {
        if (status != SS_ERR_FORMAT) /* else it has been said */
            ss_log_error("acl: %s", ss_status_text(status));
        return false;
    }
    counts = ss_acl_count(service->acl);
    ss_log_debug("acl: %zu networks, %zu names, %zu patterns", counts.networks, counts.names,
                 counts.patterns);
    return faults.count == 0 || config->task != SS_TASK_CHECK_CONFIG;
}

/* ss-manager hands the file on to its servers: here it only sees to it that they can start. */
bool ss_service_make_acl(struct ss_service *service, bool again)
{
    const struct ss_config *config = service->config;
    const bool is_server = (config->program & (SS_PROGRAM_SERVER | SS_PROGRAM_MANAGER)) != 0;
    const bool has_file = config->acl != NULL && (is_server || config->program == SS_PROGRAM_LOCAL);
    struct ss_view texts[2];
    size_t count = 0, len = 0;
    char *text = NULL;
    bool good = true;

    if (has_file) {
        if (config->program != SS_PROGRAM_MANAGER)
            ss_log_info("initializing acl...");
        good = read_list(&text, &len, config, again);
        if (text != NULL)
            texts[count++] = (struct ss_view){(const uint8_t *)text, len};
    }
    if (is_server && config->block_local)
        texts[count++] = ss_acl_block_local_text();
    if (good && count != 0)
        good = parse(service, texts, count);
    free(text);
    return good;
}
