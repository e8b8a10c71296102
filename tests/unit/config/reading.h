/* Reading a configuration in a test: files are texts, and log lines are kept. */
#ifndef SS_TESTS_READING_H
#define SS_TESTS_READING_H

#include "config/config.h"

#define READING_LINES 64

struct reading {
    struct ss_config config;
    bool good;
    int exit_code;
    char lines[READING_LINES][256]; /* "ERROR: text" */
    size_t line_count;
};

/* The file that -c c.json names; NULL: there is none. Kept until the next call. */
void reading_file(const char *text);
/* As many bytes as given, with nothing behind them. */
void reading_bytes(const char *bytes, size_t len);
/* A second file, users.json. The path `folder` always is a directory. */
void reading_users(const char *text);

/* A command line without the program's name, cut at blanks. To be ended with reading_end. */
struct reading *reading_begin(enum ss_program program, const char *line);
struct reading *reading_words(enum ss_program program, int count, char **words);
void reading_end(struct reading *reading);

/* How many lines have the level ("ERROR") and the text somewhere in them. */
size_t reading_count(const struct reading *reading, const char *level, const char *text);

/* A file alone, as program; whether it is taken. */
bool reading_takes(enum ss_program program, const char *text);

#endif
