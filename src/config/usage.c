/* The usage text, out of the table of settings. */
#include "config/config_internal.h"

#include <stdbool.h>
#include <stdio.h>

#include "codec/method.h"

static void print_option(const struct ss_setting *setting)
{
    char words[64];
    size_t used = 0;

    if (setting->letter != 0)
        used += (size_t)snprintf(words, sizeof words, "-%c", setting->letter);
    if (setting->option != NULL)
        used += (size_t)snprintf(words + used, sizeof words - used, "%s--%s", used != 0 ? ", " : "",
                                 setting->option);
    if (setting->argument != NULL)
        snprintf(words + used, sizeof words - used, " <%s>", setting->argument);
    printf("       %-34s %s\n", words, setting->help);
}

static bool is_old(const struct ss_method *method)
{
    return method->family == SS_METHODS_STREAM || method->family == SS_METHODS_PLAIN;
}

/* Those that anybody may take, or the old ones that no one should. */
static void print_methods(bool old)
{
    size_t count;
    const struct ss_method *methods = ss_method_all(&count);
    bool begun = false;

    for (size_t i = 0; i < count; i++) {
        if (is_old(&methods[i]) != old)
            continue;
        if (old && !begun)
            printf("\n  insecure methods, for peers that have no other:\n\n");
        begun = true;
        printf("       %s\n", methods[i].name);
    }
}

void ss_usage_print(enum ss_program program)
{
    printf("\nshadowsocks-uv %s\n\n", SS_VERSION);
    printf("  maintained by the shadowsocks-uv project\n\n");
    printf("  usage:\n\n    %s\n\n", ss_program_name(program));
    for (size_t row = 0; row < ss_setting_count; row++) {
        if (ss_settings[row].help != NULL && (ss_settings[row].line & program) != 0)
            print_option(&ss_settings[row]);
    }
    printf("\n  methods:\n\n");
    print_methods(false);
    print_methods(true);
    printf("\n  The default method is %s.\n\n", SS_METHOD_DEFAULT);
    fflush(stdout);
}
