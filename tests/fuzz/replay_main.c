/* Runs a fuzz target over every file of the folders that are named, where there is no fuzzer. */
#include "fuzz/fuzz.h"

#include <errno.h>
#include <string.h>

#include <dirent.h>

#define INPUT_MAX ((size_t)1 << 20)

/* Hands the target a copy of exactly the file's length, so that a sanitizer sees the ends. */
static int replay_file(const char *path)
{
    static uint8_t buffer[INPUT_MAX];
    FILE *file = fopen(path, "rb");
    uint8_t *input;
    size_t len;

    if (file == NULL) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        return 1;
    }
    len = fread(buffer, 1, sizeof buffer, file);
    fclose(file);
    input = malloc(len != 0 ? len : 1);
    if (input == NULL)
        return 1;
    memcpy(input, buffer, len);
    LLVMFuzzerTestOneInput(input, len);
    free(input);
    return 0;
}

/* How many files were replayed, or -1. */
static int replay_folder(const char *folder)
{
    DIR *entries = opendir(folder);
    struct dirent *entry;
    int count = 0;

    if (entries == NULL) {
        fprintf(stderr, "%s: %s\n", folder, strerror(errno));
        return -1;
    }
    while (count >= 0 && (entry = readdir(entries)) != NULL) {
        char path[4096];

        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        count = replay_file(path) == 0 ? count + 1 : -1;
    }
    closedir(entries);
    return count;
}

int main(int argc, char **argv)
{
    int total = 0;

    LLVMFuzzerTestOneInput((const uint8_t *)"", 0);
    for (int i = 1; i < argc; i++) {
        int count = replay_folder(argv[i]);

        if (count < 0)
            return 1;
        total += count;
    }
    printf("%d inputs replayed\n", total);
    return total > 0 ? 0 : 1; /* an empty corpus tests nothing */
}
