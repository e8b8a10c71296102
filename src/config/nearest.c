/* Which known word is meant by one that is not known. */
#include "config/config_internal.h"

#include <string.h>

#define NEAR_MAX 64

/* Letters of any case, with hyphens and underscores left out, are compared. */
static size_t fold(char *out, const char *word)
{
    size_t len = 0;

    for (; *word != '\0' && len < NEAR_MAX; word++) {
        if (*word >= 'A' && *word <= 'Z')
            out[len++] = (char)(*word - 'A' + 'a');
        else if (*word != '_' && *word != '-')
            out[len++] = *word;
    }
    return len;
}

/* Edit distance, where two neighbours changed over count as one. */
static unsigned distance(const char *one, const char *other)
{
    char a[NEAR_MAX], b[NEAR_MAX];
    unsigned rows[3][NEAR_MAX + 1];
    size_t a_len = fold(a, one), b_len = fold(b, other);

    for (size_t j = 0; j <= b_len; j++)
        rows[0][j] = (unsigned)j;
    for (size_t i = 1; i <= a_len; i++) {
        unsigned *row = rows[i % 3], *above = rows[(i + 2) % 3], *two_above = rows[(i + 1) % 3];

        row[0] = (unsigned)i;
        for (size_t j = 1; j <= b_len; j++) {
            unsigned best = above[j - 1] + (a[i - 1] != b[j - 1]);

            if (above[j] + 1 < best)
                best = above[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                two_above[j - 2] + 1 < best)
                best = two_above[j - 2] + 1;
            row[j] = best;
        }
    }
    return rows[a_len % 3][b_len];
}

static bool is_near(const char *word, unsigned distance_found)
{
    size_t len = strlen(word);

    return len <= NEAR_MAX && distance_found <= 1 + len / 4 && distance_found < len;
}

const char *ss_setting_nearest(const char *key)
{
    const char *nearest = NULL;
    unsigned least = 0;

    for (size_t i = 0; i < ss_setting_count; i++) {
        const char *names[2] = {ss_settings[i].key, ss_settings[i].alias};

        for (size_t n = 0; n < 2; n++) {
            unsigned found;

            if (names[n] == NULL)
                continue;
            found = distance(key, names[n]);
            if (is_near(key, found) && (nearest == NULL || found < least)) {
                nearest = names[n];
                least = found;
            }
        }
    }
    return nearest;
}

const char *ss_nearest_word(const char *word, const char *const *words)
{
    const char *nearest = NULL;
    unsigned least = 0;

    for (; *words != NULL; words++) {
        unsigned found = distance(word, *words);

        if (is_near(word, found) && (nearest == NULL || found < least)) {
            nearest = *words;
            least = found;
        }
    }
    return nearest;
}
