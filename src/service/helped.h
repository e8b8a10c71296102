/*
 * What the helper process does for a service besides plugins, once the user was switched: it opens
 * the files of the start again, and binds ports that only the rights of the start allow. For this
 * folder; of the thread of loop 0.
 */
#ifndef SS_SERVICE_HELPED_H
#define SS_SERVICE_HELPED_H

#include <stdbool.h>
#include <stddef.h>

#include "config/config.h"
#include "net/socket.h"
#include "service/helper_link.h"
#include "service/plugin.h"
#include "sys/read_file.h"

/* All zero: there is no helper. */
struct ss_helped {
    struct ss_helper *helper;
    struct ss_helper_link *link;
    bool owns_link; /* else it is the plugins' */

    struct ss_handed_file files[SS_HELPER_PATHS_MAX]; /* paths are owned */
    uint32_t ids[SS_HELPER_PATHS_MAX];                /* of requests under way */
    size_t file_count, waiting;
    void (*opened)(void *owner);
    void *owner;
};

/*
 * Starts the helper, if anything needs it: a plugin, or a user to be switched to. `forget` and
 * `owner` as in ss_helper_options. False after an error line.
 */
bool ss_helped_start(struct ss_helped *helped, const struct ss_config *config, bool has_plugins,
                     void (*forget)(void *owner), void *owner);

/* Its notices come to the loop; plugins, which may be NULL, are attached too. False after an error
 * line. */
bool ss_helped_attach(struct ss_helped *helped, struct ss_plugins *plugins, uv_loop_t *loop);

/* Before the user is switched. False after an error line. */
bool ss_helped_seal(const struct ss_helped *helped, const struct ss_config *config);

/* For the engine: binds what this process may not. The struct is borrowed by it. */
struct ss_binder ss_helped_binder(struct ss_helped *helped);

/*
 * Opens the files of the start again. `opened` is called when all have answered, at once if there
 * is nobody to ask; ss_file_read then takes them where it may not open a path itself, until
 * ss_helped_close_files.
 */
void ss_helped_open_files(struct ss_helped *helped, void (*opened)(void *owner), void *owner);
void ss_helped_close_files(struct ss_helped *helped);

/* No notice comes any more; before the loop ends. Twice is fine. */
void ss_helped_close(struct ss_helped *helped);

/* Ends the helper and waits for it. */
void ss_helped_end(struct ss_helped *helped);

#endif
