/* Preloaded into a program: its clock is further than the real one by the seconds that the file of
 * SS_CLOCK_SHIFT_FILE says. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static long shift(void)
{
    const char *path = getenv("SS_CLOCK_SHIFT_FILE");
    FILE *file = path != NULL ? fopen(path, "r") : NULL;
    long seconds = 0;

    if (file == NULL)
        return 0;
    if (fscanf(file, "%ld", &seconds) != 1)
        seconds = 0;
    fclose(file);
    return seconds;
}

time_t time(time_t *out)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    now.tv_sec += shift();
    if (out != NULL)
        *out = now.tv_sec;
    return now.tv_sec;
}
