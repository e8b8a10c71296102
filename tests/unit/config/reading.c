/* Reading a configuration in a test. */
#include "reading.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <fcntl.h>
#include <unistd.h>

#include "base/log.h"

static struct reading *current;
static const char *file_bytes, *users_text;
static size_t file_len;

static void keep(enum ss_log_level level, const char *text)
{
    static const char *const names[] = {"ERROR", "WARN", "INFO", "DEBUG"};

    if (current != NULL && current->line_count < READING_LINES)
        snprintf(current->lines[current->line_count++], sizeof current->lines[0], "%s: %.200s",
                 names[level], text);
}

void reading_bytes(const char *bytes, size_t len)
{
    file_bytes = bytes;
    file_len = len;
}

void reading_file(const char *text)
{
    reading_bytes(text, text != NULL ? strlen(text) : 0);
}

void reading_users(const char *text)
{
    users_text = text;
}

static enum ss_status read_file(char **text, size_t *len, const char *path, size_t limit)
{
    bool users = strcmp(path, "users.json") == 0;
    const char *from = users ? users_text : file_bytes;

    if (strcmp(path, "folder") == 0)
        return SS_ERR_ARGUMENT;
    if (from == NULL || strstr(path, "json") == NULL)
        return SS_ERR_NOT_FOUND;
    *len = users ? strlen(from) : file_len;
    if (*len > limit)
        return SS_ERR_LIMIT;
    *text = malloc(*len != 0 ? *len : 1); /* no byte more, so that a read beyond is found */
    if (*text == NULL)
        return SS_ERR_MEMORY;
    memcpy(*text, from, *len);
    return SS_OK;
}

/* Usage texts are not for the test's output. The result is for unmute. */
static int mute(void)
{
    int null = open("/dev/null", O_WRONLY), saved;

    fflush(stdout);
    saved = dup(STDOUT_FILENO);
    dup2(null, STDOUT_FILENO);
    close(null);
    return saved;
}

static void unmute(int saved)
{
    fflush(stdout);
    dup2(saved, STDOUT_FILENO);
    close(saved);
}

struct reading *reading_words(enum ss_program program, int count, char **words)
{
    struct reading *reading = calloc(1, sizeof *reading);
    int saved;

    if (reading == NULL)
        abort();
    current = reading;
    ss_log_set_level(SS_LOG_DEBUG);
    ss_log_set_sink(keep);
    saved = mute();
    reading->good =
        ss_config_read(&reading->config, program, count, words, read_file, &reading->exit_code);
    unmute(saved);
    ss_log_set_sink(NULL);
    current = NULL;
    return reading;
}

struct reading *reading_begin(enum ss_program program, const char *line)
{
    char copy[2048];
    char *words[64] = {(char *)(uintptr_t) "program"};
    int count = 1;

    snprintf(copy, sizeof copy, "%s", line);
    for (char *word = strtok(copy, " "); word != NULL && count < 63; word = strtok(NULL, " "))
        words[count++] = word;
    return reading_words(program, count, words);
}

void reading_end(struct reading *reading)
{
    ss_config_free(&reading->config);
    free(reading);
}

size_t reading_count(const struct reading *reading, const char *level, const char *text)
{
    size_t count = 0;

    for (size_t i = 0; i < reading->line_count; i++) {
        const char *line = reading->lines[i];

        if (strncmp(line, level, strlen(level)) == 0 && strstr(line, text) != NULL)
            count++;
    }
    return count;
}

bool reading_takes(enum ss_program program, const char *text)
{
    struct reading *reading;
    bool good;

    reading_file(text);
    reading = reading_begin(program, "-c c.json");
    good = reading->good;
    reading_end(reading);
    return good;
}
