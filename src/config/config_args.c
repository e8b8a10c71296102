/* The command line: short options, bundled or glued, and long ones, abbreviated as people do it. */
#include "config/config_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

struct args {
    struct ss_raw *raw;
    char **argv;
    int argc;
    int next;     /* the word after the present one */
    bool refused; /* something was not an option: usage follows */
    bool blanked; /* words of it have become shorter */
};

/* Leaves one character of a secret, so that a list of processes shows that there was one. */
static void blank_out(struct args *args, char *text)
{
    if (*text == '\0')
        return;
    args->blanked = true;
    *text++ = '*';
    while (*text != '\0')
        *text++ = '\0';
}

/* Whether the words lie one behind the other, as a system hands them over. */
static bool is_one_block(int argc, char *const *argv)
{
    for (int i = 0; i + 1 < argc; i++)
        if (argv[i] + strlen(argv[i]) + 1 != argv[i + 1])
            return false;
    return argc > 0;
}

/* Moves them together, so that the gap behind a secret does not tell how long it was. What is left
 * over stands behind the last of them. */
static void close_gaps(int argc, char **argv, const char *end)
{
    char *to = argv[0];

    for (int i = 0; i < argc; i++) {
        size_t size = strlen(argv[i]) + 1;

        memmove(to, argv[i], size);
        argv[i] = to;
        to += size;
    }
    memset(to, 0, (size_t)(end - to));
}

/* Without a value behind "=", which may be a secret. */
static enum ss_args_result refuse(struct args *args, const char *dashes, const char *word)
{
    ss_log_error("Unrecognized option: %s%.*s", dashes, (int)strcspn(word, "="), word);
    args->refused = true;
    return SS_ARGS_OK;
}

static enum ss_args_result add_address(char **list, size_t *count, const char *value)
{
    if (*count == SS_ADDRESSES_GIVEN_MAX) {
        ss_log_warn("only %d addresses are used; '%s' is left out", SS_ADDRESSES_GIVEN_MAX, value);
        return SS_ARGS_OK;
    }
    list[*count] = ss_text_copy(value);
    if (list[*count] == NULL)
        return SS_ARGS_FATAL;
    ++*count;
    return SS_ARGS_OK;
}

static enum ss_args_result set(struct ss_raw *raw, size_t row, const char *text)
{
    return ss_raw_set(raw, row, text, SS_SOURCE_LINE) == SS_OK ? SS_ARGS_OK : SS_ARGS_FATAL;
}

/* The classic suite logs some options as it meets them; here that waits for the end of the line. */
static void say(struct ss_raw *raw, const struct ss_setting *setting, const char *value)
{
    if (setting->said == NULL || raw->said_count == SS_SAID_MAX)
        return;
    if (value == NULL)
        snprintf(raw->said[raw->said_count++], sizeof raw->said[0], "%s", setting->said);
    else
        snprintf(raw->said[raw->said_count++], sizeof raw->said[0], "%s%ld", setting->said,
                 strtol(value, NULL, 10));
}

/* One option with its value (NULL for one that takes none). */
static enum ss_args_result take(struct args *args, size_t row, char *value)
{
    const struct ss_setting *setting = &ss_settings[row];
    struct ss_raw *raw = args->raw;
    enum ss_args_result result;

    if ((setting->line & raw->program) == 0) {
        if (setting->kind == SS_KIND_SECRET)
            blank_out(args, value);
        return SS_ARGS_OK; /* taken and ignored */
    }
    say(raw, setting, value);
    switch (setting->kind) {
    case SS_KIND_HELP:
        return SS_ARGS_HELP;
    case SS_KIND_LIST_SETTINGS:
        return SS_ARGS_LIST;
    case SS_KIND_GEN_KEY:
        raw->gen_key_method = value;
        return SS_ARGS_GEN_KEY;
    case SS_KIND_ONE_TIME:
        ss_log_error("One time auth has been deprecated. Try AEAD ciphers instead.");
        return SS_ARGS_FATAL;
    case SS_KIND_REFUSED:
        ss_log_error("--%s is not supported", setting->option);
        return SS_ARGS_FATAL;
    case SS_KIND_CHECK_CONFIG:
        raw->task = SS_TASK_CHECK_CONFIG;
        return SS_ARGS_OK;
    case SS_KIND_PRINT_URL:
        raw->task = SS_TASK_PRINT_URL;
        return SS_ARGS_OK;
    case SS_KIND_SERVERS:
        raw->servers_source = SS_SOURCE_LINE;
        return add_address(raw->servers, &raw->server_count, value);
    case SS_KIND_ADDRESSES:
        raw->addresses_source = SS_SOURCE_LINE;
        return add_address(raw->addresses, &raw->address_count, value);
    case SS_KIND_PLUGIN_ARGS:
        raw->plugin_args_source = SS_SOURCE_LINE;
        result = ss_words_add(&raw->plugin_args, &raw->plugin_arg_count, value) == SS_OK
                     ? SS_ARGS_OK
                     : SS_ARGS_FATAL;
        blank_out(args, value);
        return result;
    case SS_KIND_TCP_UDP:
    case SS_KIND_UDP_ONLY:
        return set(raw, ss_setting_at(offsetof(struct ss_config, mode)),
                   setting->kind == SS_KIND_TCP_UDP ? "tcp_and_udp" : "udp_only");
    case SS_KIND_FLAG:
        return set(raw, row, "true");
    case SS_KIND_ALIAS:
        return set(raw, ss_setting_at(setting->offset), value);
    default:
        result = set(raw, row, value);
        if (setting->kind == SS_KIND_SECRET ||
            (setting->kind == SS_KIND_CONFIG && strncmp(value, "ss://", 5) == 0))
            blank_out(args, value);
        return result;
    }
}

static bool knows(const struct args *args, const struct ss_setting *setting)
{
    return ((setting->line | setting->eat) & args->raw->program) != 0;
}

/* The letters of one word; a value is the rest of the word, or else the next word. */
static enum ss_args_result take_short(struct args *args, char *word)
{
    for (; *word != '\0'; word++) {
        enum ss_args_result result;
        size_t row = 0;

        while (row < ss_setting_count &&
               (ss_settings[row].letter != *word || !knows(args, &ss_settings[row])))
            row++;
        if (row == ss_setting_count) {
            char name[2] = {*word, '\0'};

            refuse(args, "-", name);
            continue;
        }
        if (ss_settings[row].argument == NULL) {
            result = take(args, row, NULL);
        } else if (word[1] != '\0') {
            return take(args, row, word + 1);
        } else if (args->next < args->argc) {
            return take(args, row, args->argv[args->next++]);
        } else {
            char name[2] = {*word, '\0'};

            return refuse(args, "-", name);
        }
        if (result != SS_ARGS_OK)
            return result;
    }
    return SS_ARGS_OK;
}

/*
 * The row of a long option, whole or abbreviated; ss_setting_count when there is none, or more than
 * one. Options that the classic suite does not have are asked only when none of its fits, so that
 * every abbreviation that people use keeps its meaning.
 */
static size_t find_long(const struct args *args, const char *name, size_t len)
{
    for (int ours = 0; ours <= 1; ours++) {
        size_t found = ss_setting_count, count = 0;

        for (size_t row = 0; row < ss_setting_count; row++) {
            const struct ss_setting *setting = &ss_settings[row];

            if (setting->option == NULL || !knows(args, setting) ||
                strncmp(setting->option, name, len) != 0)
                continue;
            if (setting->option[len] == '\0')
                return row;
            if (setting->ours == (ours != 0)) {
                found = row;
                count++;
            }
        }
        if (count != 0)
            return count == 1 ? found : ss_setting_count;
    }
    return ss_setting_count;
}

static enum ss_args_result take_long(struct args *args, char *word)
{
    char *equals = strchr(word, '=');
    size_t row = find_long(args, word, equals != NULL ? (size_t)(equals - word) : strlen(word));

    if (row == ss_setting_count)
        return refuse(args, "--", word);
    if (ss_settings[row].argument == NULL)
        return equals == NULL ? take(args, row, NULL) : refuse(args, "--", word);
    if (equals != NULL)
        return take(args, row, equals + 1);
    if (args->next == args->argc)
        return refuse(args, "--", word);
    return take(args, row, args->argv[args->next++]);
}

static enum ss_args_result take_words(struct args *args)
{
    bool options_first = getenv("POSIXLY_CORRECT") != NULL;

    while (args->next < args->argc) {
        char *word = args->argv[args->next++];
        enum ss_args_result result;

        if (word[0] != '-' || word[1] == '\0') {
            if (options_first)
                break;
            continue; /* words that are no options have no meaning */
        }
        if (strcmp(word, "--") == 0)
            break;
        result = word[1] == '-' ? take_long(args, word + 2) : take_short(args, word + 1);
        if (result != SS_ARGS_OK)
            return result;
    }
    return args->refused ? SS_ARGS_USAGE : SS_ARGS_OK;
}

enum ss_args_result ss_args_read(struct ss_raw *raw, int argc, char **argv)
{
    struct args args = {.raw = raw, .argv = argv, .argc = argc, .next = 1};
    const char *end = is_one_block(argc, argv) ? argv[argc - 1] + strlen(argv[argc - 1]) + 1 : NULL;
    enum ss_args_result result = take_words(&args);

    /* In all other cases the program is about to end. */
    if (result == SS_ARGS_OK && args.blanked && end != NULL)
        close_gaps(argc, argv, end);
    return result;
}
