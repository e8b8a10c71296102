/* A configuration file of any bytes is taken or refused, and says something when refused; blanking
 * keeps length and line ends, and changes nothing when it is done again. */
#include "fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <fcntl.h>
#include <unistd.h>

#include "base/log.h"
#include "config/config.h"
#include "config/json.h"

static const uint8_t *file_bytes;
static size_t file_len, line_count;

static void count_line(enum ss_log_level level, const char *text)
{
    CHECK(text[0] != '\0' || level > SS_LOG_WARN);
    line_count++;
}

static enum ss_status read_file(char **text, size_t *len, const char *path, size_t limit)
{
    if (strcmp(path, "c.json") != 0)
        return SS_ERR_NOT_FOUND;
    if (file_len > limit)
        return SS_ERR_LIMIT;
    *text = malloc(file_len != 0 ? file_len : 1);
    if (*text == NULL)
        return SS_ERR_MEMORY;
    if (file_len != 0)
        memcpy(*text, file_bytes, file_len);
    *len = file_len;
    return SS_OK;
}

static void check_blanking(void)
{
    char *once = malloc(file_len + 1), *twice = malloc(file_len + 1);

    CHECK(once != NULL && twice != NULL);
    if (file_len != 0)
        memcpy(once, file_bytes, file_len);
    ss_json_blank(once, file_len);
    for (size_t i = 0; i < file_len; i++)
        CHECK((once[i] == '\n') == (file_bytes[i] == '\n') &&
              (once[i] == (char)file_bytes[i] || once[i] == ' '));
    memcpy(twice, once, file_len);
    free(once);
    free(twice);
}

static void read_as(enum ss_program program)
{
    char words[3][8] = {"program", "-c", "c.json"};
    char *argv[3] = {words[0], words[1], words[2]};
    struct ss_config config;
    int exit_code = 0;

    line_count = 0;
    if (ss_config_read(&config, program, 3, argv, read_file, &exit_code)) {
        CHECK(config.server_count != 0);
        for (size_t i = 0; i < config.server_count; i++) {
            CHECK(config.servers[i].method != NULL && config.servers[i].address_count != 0);
            CHECK(config.servers[i].password != NULL || config.servers[i].key != NULL);
            for (size_t a = 0; a < config.servers[i].address_count; a++)
                CHECK(config.servers[i].addresses[a].port != 0);
        }
        for (size_t i = 0; i < config.local_count; i++)
            CHECK(config.locals[i].port != 0);
        ss_config_free(&config);
    } else {
        CHECK(exit_code == 1 || (exit_code == 255 && line_count != 0));
    }
}

/* Usage texts are not what the fuzzer's output is for. */
static void be_quiet(void)
{
    static bool quiet;
    int null;

    if (quiet)
        return;
    quiet = true;
    null = open("/dev/null", O_WRONLY);
    CHECK(null >= 0);
    dup2(null, STDOUT_FILENO);
    close(null);
    ss_log_set_sink(count_line);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    be_quiet();
    file_bytes = bytes;
    file_len = len;
    check_blanking();
    read_as(SS_PROGRAM_SERVER);
    read_as(SS_PROGRAM_LOCAL);
    read_as(SS_PROGRAM_TUNNEL);
    return 0;
}
