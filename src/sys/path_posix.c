/* Paths that hold whatever the present directory becomes. */
#include "sys/process.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <unistd.h>

char *ss_path_absolute(const char *path)
{
    char folder[PATH_MAX];
    size_t size;
    char *full;

    if (path[0] == '/')
        return strdup(path);
    if (getcwd(folder, sizeof folder) == NULL)
        return NULL;
    size = strlen(folder) + 1 + strlen(path) + 1;
    full = malloc(size);
    if (full != NULL)
        snprintf(full, size, "%s/%s", folder, path);
    return full;
}

char *ss_path_sibling(const char *name)
{
    char path[PATH_MAX];
    ssize_t len = readlink("/proc/self/exe", path, sizeof path - 1);
    size_t folder = 0;
    char *full;

    if (len <= 0)
        return NULL;
    for (size_t i = 0; i < (size_t)len; i++)
        if (path[i] == '/')
            folder = i + 1;
    full = malloc(folder + strlen(name) + 1);
    if (full == NULL)
        return NULL;
    memcpy(full, path, folder);
    strcpy(full + folder, name);
    if (access(full, X_OK) == 0)
        return full;
    free(full);
    return NULL;
}
