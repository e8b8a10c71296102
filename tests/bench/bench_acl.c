/*
 * What a long access control list costs: to load, to keep, and to ask.
 *
 *     bench_acl [names [networks [patterns]]]      default 100000 10000 500
 *
 * Half of the names are written as `||name`, half in the classic idiom `(^|\.)name$`; one in four
 * networks is of IPv6. Loading is CPU time with all that the patterns' compiling takes. Memory is
 * what the list keeps on the heap, and how much the process grew by at most meanwhile, its text
 * included. A look-up is ns of CPU time, the mean over 100,000 different questions, first of a list
 * with patterns too ("all"), each of which a name that is in no set has to pass, then with names
 * and networks alone ("sets"). The last line is the longest that one pattern can be kept busy.
 */
#include <malloc.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "acl/acl.h"

#define QUESTIONS 100000

struct text {
    char *bytes;
    size_t len, cap;
};

static double now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now); /* others on the machine do not count */
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void must(int holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "bench_acl: %s failed\n", what);
        exit(1);
    }
}

static uint32_t random_next(void)
{
    static uint32_t seed = 1;

    seed = seed * 1664525 + 1013904223;
    return seed >> 4;
}

static void append(struct text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void append(struct text *text, const char *format, ...)
{
    va_list arguments;

    if (text->cap - text->len < 256) {
        text->cap = 2 * text->cap + 4096;
        text->bytes = realloc(text->bytes, text->cap);
        must(text->bytes != NULL, "realloc");
    }
    va_start(arguments, format);
    text->len += (size_t)vsnprintf(text->bytes + text->len, 256, format, arguments);
    va_end(arguments);
}

static void name_of(char *name, uint32_t index, const char *in_front)
{
    static const char *const ends[] = {"com", "net", "org", "co.uk", "com.cn"};

    sprintf(name, "%ssite-%x-%x.%s", in_front, index * 2654435761u, index % 977, ends[index % 5]);
}

static void write_names(struct text *text, uint32_t count)
{
    char name[128];

    for (uint32_t i = 0; i < count; i++) {
        name_of(name, i, "");
        if (i % 2 == 0) {
            append(text, "||%s\n", name);
            continue;
        }
        append(text, "(^|\\.)");
        for (const char *c = name; *c != '\0'; c++)
            append(text, *c == '.' ? "\\%c" : "%c", *c);
        append(text, "$\n");
    }
}

static void write_networks(struct text *text, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t a = random_next(), b = random_next();

        if (i % 4 == 3)
            append(text, "2001:%x:%x::/%u\n", a & 0xffff, b & 0xffff, 28 + a % 21);
        else
            append(text, "%u.%u.%u.0/%u\n", 1 + a % 200, b & 0xff, (b >> 8) & 0xff, 12 + a % 13);
    }
}

static void write_patterns(struct text *text, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        switch (i % 5) {
        case 0:
            append(text, "^ads?[0-9]*\\.%x\\..*$\n", i);
            break;
        case 1:
            append(text, "(^|\\.)track(er|ing)?%x\\.\n", i);
            break;
        case 2:
            append(text, "banner%x.*\\.(com|net)$\n", i);
            break;
        case 3:
            append(text, "^([^.]+\\.)*cdn%x[a-z]?\\.example\\.(com|org)$\n", i);
            break;
        default:
            append(text, "%x\\.doubleclick\n", i);
            break;
        }
    }
}

static struct ss_acl *load(const struct text *text)
{
    const struct ss_view view = {(const uint8_t *)text->bytes, text->len};
    struct ss_acl *acl;

    must(ss_acl_parse(&acl, &view, 1, UINT64_C(0x243f6a8885a308d3), NULL, NULL) == SS_OK,
         "ss_acl_parse");
    return acl;
}

static long peak_kib(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

static void time_names(const char *what, const struct ss_acl *acl, char (*names)[128])
{
    struct ss_acl_scratch *scratch = ss_acl_scratch_new();
    size_t hits = 0;
    double start, best = 1e9;

    must(scratch != NULL, "ss_acl_scratch_new");
    for (int run = 0; run < 3; run++) {
        hits = 0;
        start = now_s();
        for (size_t i = 0; i < QUESTIONS; i++)
            hits += ss_acl_name_route(acl, scratch, names[i], strlen(names[i])) == SS_ACL_BYPASS;
        if (now_s() - start < best)
            best = now_s() - start;
    }
    printf("%-34s %10.0f ns   %zu of %u found\n", what, best / QUESTIONS * 1e9, hits,
           (unsigned)QUESTIONS);
    ss_acl_scratch_free(scratch);
}

static void time_addresses(const char *what, const struct ss_acl *acl, const struct ss_ip *ips)
{
    size_t hits = 0;
    double start, best = 1e9;

    for (int run = 0; run < 3; run++) {
        hits = 0;
        start = now_s();
        for (size_t i = 0; i < QUESTIONS; i++)
            hits += ss_acl_addresses_route(acl, &ips[i], 1) == SS_ACL_BYPASS;
        if (now_s() - start < best)
            best = now_s() - start;
    }
    printf("%-34s %10.0f ns   %zu of %u found\n", what, best / QUESTIONS * 1e9, hits,
           (unsigned)QUESTIONS);
}

static void time_all(const char *of, const struct ss_acl *acl, uint32_t name_count)
{
    char(*names)[128] = calloc(QUESTIONS, sizeof *names);
    struct ss_ip *ips = calloc(QUESTIONS, sizeof *ips);
    char what[64];

    must(names != NULL && ips != NULL, "calloc");
    for (uint32_t i = 0; i < QUESTIONS; i++)
        name_of(names[i], name_count != 0 ? random_next() % name_count : 0, i % 2 ? "www." : "");
    snprintf(what, sizeof what, "%s, name that is listed", of);
    time_names(what, acl, names);
    for (uint32_t i = 0; i < QUESTIONS; i++)
        name_of(names[i], name_count + random_next(), i % 2 ? "www.static.x" : "x");
    snprintf(what, sizeof what, "%s, name that is not", of);
    time_names(what, acl, names);
    for (uint32_t i = 0; i < QUESTIONS; i++) {
        for (int c = 0; c < 126; c++)
            names[i][c] = c % 2 == 1 ? '.' : (char)('a' + random_next() % 26);
        names[i][126] = '\0';
    }
    snprintf(what, sizeof what, "%s, name of 63 labels", of);
    time_names(what, acl, names);
    for (uint32_t i = 0; i < QUESTIONS; i++) {
        const uint32_t a = random_next(), b = random_next();

        ips[i] = (struct ss_ip){.family = SS_FAMILY_IPV4,
                                .bytes = {(uint8_t)(1 + a % 200), (uint8_t)b, (uint8_t)(b >> 8)}};
    }
    snprintf(what, sizeof what, "%s, IPv4 address", of);
    time_addresses(what, acl, ips);
    for (uint32_t i = 0; i < QUESTIONS; i++) {
        const uint32_t a = random_next(), b = random_next();

        ips[i] = (struct ss_ip){
            .family = SS_FAMILY_IPV6,
            .bytes = {0x20, 0x01, (uint8_t)(a >> 8), (uint8_t)a, (uint8_t)(b >> 8), (uint8_t)b}};
    }
    snprintf(what, sizeof what, "%s, IPv6 address", of);
    time_addresses(what, acl, ips);
    free(names);
    free(ips);
}

static void time_stray(void)
{
    static const char *const stray[] = {"^(a+)+$", "^(a|aa)*$", "^(?:(?:(a)|(aa)|b)+)+[cd]$",
                                        "(*NO_JIT)^(a+)+$", "(*NO_JIT)(a?){50}a{50}$"};
    struct ss_acl_scratch *scratch = ss_acl_scratch_new();
    double worst = 0;
    char name[SS_HOST_MAX];

    must(scratch != NULL, "ss_acl_scratch_new");
    memset(name, 'a', sizeof name - 1);
    name[sizeof name - 1] = '-';
    for (size_t i = 0; i < sizeof stray / sizeof stray[0]; i++) {
        const struct ss_view view = {(const uint8_t *)stray[i], strlen(stray[i])};
        struct ss_acl *acl;
        double start;

        must(ss_acl_parse(&acl, &view, 1, 1, NULL, NULL) == SS_OK, "ss_acl_parse");
        (void)ss_acl_name_route(acl, scratch, name, sizeof name);
        start = now_s();
        for (int times = 0; times < 20; times++)
            (void)ss_acl_name_route(acl, scratch, name, sizeof name);
        if ((now_s() - start) / 20 > worst)
            worst = (now_s() - start) / 20;
        ss_acl_release(acl);
    }
    printf("%-34s %10.0f ns\n", "a pattern that is stopped", worst * 1e9);
    ss_acl_scratch_free(scratch);
}

int main(int argc, char **argv)
{
    const uint32_t names = argc > 1 ? (uint32_t)atoi(argv[1]) : 100000;
    const uint32_t networks = argc > 2 ? (uint32_t)atoi(argv[2]) : 10000;
    const uint32_t patterns = argc > 3 ? (uint32_t)atoi(argv[3]) : 500;
    const long before_kib = peak_kib();
    struct text text = {0};
    struct ss_acl *acl;
    struct mallinfo2 memory;
    struct ss_acl_counts counts;
    double start;

    append(&text, "[bypass_list]\n");
    write_names(&text, names);
    write_networks(&text, networks);
    write_patterns(&text, patterns);
    memory = mallinfo2();
    start = now_s();
    acl = load(&text);
    printf("%-34s %10.0f ms\n", "loading", (now_s() - start) * 1e3);
    printf("%-34s %10.1f MiB\n", "memory, kept on the heap",
           (double)(mallinfo2().uordblks + mallinfo2().hblkhd - memory.uordblks - memory.hblkhd) /
               1048576);
    printf("%-34s %10.1f MiB\n", "memory, grown by at most",
           (double)(peak_kib() - before_kib) / 1024);
    counts = ss_acl_count(acl);
    printf("%zu names, %zu networks, %zu patterns in %zu bytes\n", counts.names, counts.networks,
           counts.patterns, text.len);
    time_all("all", acl, names);
    ss_acl_release(acl);

    text.len = 0;
    append(&text, "[bypass_list]\n");
    write_names(&text, names);
    write_networks(&text, networks);
    acl = load(&text);
    time_all("sets", acl, names);
    ss_acl_release(acl);
    free(text.bytes);
    time_stray();
    return 0;
}
