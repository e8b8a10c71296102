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
