/* Allocates once in each way, so that the driver's self-test sees that each is counted. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

int main(void)
{
    char line[16];
    void *volatile blocks[6];
    char *volatile copy;

    /* stdio's own buffers come first, so that they are not counted below. */
    printf("ready\n");
    fflush(stdout);
    if (fgets(line, sizeof line, stdin) == NULL)
        return 1;

    blocks[0] = malloc(10);
    blocks[1] = calloc(2, 10);
    blocks[2] = realloc(NULL, 10);
    blocks[3] = aligned_alloc(64, 64);
    if (posix_memalign((void **)&blocks[4], 64, 64) != 0)
        return 1;
    copy = strdup("a text");
    blocks[5] = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < 5; i++)
        free(blocks[i]);
    free(copy);

    printf("done\n");
    fflush(stdout);
    return fgets(line, sizeof line, stdin) == NULL || blocks[5] == MAP_FAILED;
}
