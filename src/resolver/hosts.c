/* The table of a hosts file: names sorted for a binary search, addresses stored once a line. */
#include "resolver/hosts.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct ss_hosts_entry {
    const char *name; /* in `names` */
    uint32_t ip;      /* index in `ips`, which grows with the line */
};

/* A piece of the text. */
struct piece {
    const char *ptr;
    size_t len;
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

/* Takes the next line off the text, without its end and its comment. False when none is left. */
static bool next_line(struct piece *text, struct piece *line)
{
    const char *end, *comment;

    if (text->len == 0)
        return false;
    end = memchr(text->ptr, '\n', text->len);
    line->ptr = text->ptr;
    line->len = end != NULL ? (size_t)(end - text->ptr) : text->len;
    text->ptr += line->len + (end != NULL);
    text->len -= line->len + (end != NULL);
    comment = line->len != 0 ? memchr(line->ptr, '#', line->len) : NULL;
    if (comment != NULL)
        line->len = (size_t)(comment - line->ptr);
    return true;
}

/* Takes the next word off the line. False when only blanks are left. */
static bool next_word(struct piece *line, struct piece *word)
{
    while (line->len != 0 && is_blank(*line->ptr)) {
        line->ptr++;
        line->len--;
    }
    word->ptr = line->ptr;
    word->len = 0;
    while (line->len != 0 && !is_blank(*line->ptr)) {
        line->ptr++;
        line->len--;
        word->len++;
    }
    return word->len != 0;
}

static bool read_ip(struct ss_ip *ip, const struct piece *word)
{
    char text[SS_IP_TEXT_MAX];

    if (word->len >= sizeof text || memchr(word->ptr, '\0', word->len) != NULL)
        return false;
    memcpy(text, word->ptr, word->len);
    text[word->len] = '\0';
    return ss_ip_parse(ip, text) == SS_OK;
}

static bool is_name(const struct piece *word)
{
    return word->len <= SS_HOST_MAX && ss_host_is_valid(word->ptr, word->len);
}

/*
 * Goes through the text once. With `hosts` NULL it only counts, so that what is allocated between
 * the two passes fits exactly.
 */
static void walk(struct piece text, struct ss_hosts *hosts, size_t *entries, size_t *ips,
                 size_t *name_bytes)
{
    struct piece line, word;
    struct ss_ip ip;

    *entries = *ips = *name_bytes = 0;
    while (next_line(&text, &line)) {
        bool used = false;

        if (!next_word(&line, &word) || !read_ip(&ip, &word))
            continue;
        while (next_word(&line, &word)) {
            if (!is_name(&word))
                continue;
            if (hosts != NULL) {
                char *name = hosts->names + *name_bytes;

                for (size_t i = 0; i < word.len; i++) {
                    char c = word.ptr[i];

                    name[i] = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
                }
                name[word.len] = '\0';
                if (word.len > 1 && name[word.len - 1] == '.')
                    name[word.len - 1] = '\0';
                hosts->entries[*entries].name = name;
                hosts->entries[*entries].ip = (uint32_t)*ips;
                hosts->ips[*ips] = ip;
            }
            *entries += 1;
            *name_bytes += word.len + 1;
            used = true;
        }
        *ips += used;
    }
}

static int compare(const void *a, const void *b)
{
    const struct ss_hosts_entry *x = a, *y = b;
    int by_name = strcmp(x->name, y->name);

    if (by_name != 0)
        return by_name;
    return x->ip < y->ip ? -1 : x->ip > y->ip;
}

enum ss_status ss_hosts_parse(struct ss_hosts *hosts, const char *text, size_t len)
{
    const struct piece whole = {text, len};
    struct ss_hosts fresh = {0};
    size_t entries, ips, name_bytes;

    if (len > SS_HOSTS_TEXT_MAX)
        return SS_ERR_FORMAT;
    walk(whole, NULL, &entries, &ips, &name_bytes);
    if (entries != 0) {
        fresh.entries = calloc(entries, sizeof *fresh.entries);
        fresh.ips = calloc(ips, sizeof *fresh.ips);
        fresh.names = malloc(name_bytes);
        if (fresh.entries == NULL || fresh.ips == NULL || fresh.names == NULL) {
            ss_hosts_clear(&fresh);
            return SS_ERR_MEMORY;
        }
        walk(whole, &fresh, &entries, &ips, &name_bytes);
        fresh.count = entries;
        qsort(fresh.entries, entries, sizeof *fresh.entries, compare);
    }
    ss_hosts_clear(hosts);
    *hosts = fresh;
    return SS_OK;
}

void ss_hosts_clear(struct ss_hosts *hosts)
{
    free(hosts->entries);
    free(hosts->ips);
    free(hosts->names);
    *hosts = (struct ss_hosts){0};
}

size_t ss_hosts_find(const struct ss_hosts *hosts, const char *name, struct ss_ip *out, size_t cap)
{
    size_t low = 0, high = hosts->count, count = 0;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (strcmp(hosts->entries[middle].name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < hosts->count && strcmp(hosts->entries[low].name, name) == 0 && count < cap;
         low++) {
        const struct ss_ip *ip = &hosts->ips[hosts->entries[low].ip];
        size_t known = 0;

        while (known < count && !ss_ip_equal(&out[known], ip))
            known++;
        if (known == count)
            out[count++] = *ip;
    }
    return count;
}
