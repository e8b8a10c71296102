/* What decodes is encoded to the same text, and what does not writes nothing. */
#include "fuzz/fuzz.h"

#include <string.h>

#include "base/base64.h"

#define TEXT_MAX 4096

static void check_decoded(const char *text, size_t text_len, enum ss_base64_alphabet alphabet)
{
    static uint8_t out[TEXT_MAX];
    static char again[TEXT_MAX + 8];
    size_t len = 1, needed = 1;
    enum ss_status status;

    memset(out, 0xa5, sizeof out);
    status = ss_base64_decode(out, sizeof out, &len, text, text_len, alphabet);
    if (status != SS_OK) {
        CHECK(status == SS_ERR_FORMAT);
        CHECK(len == 0 && out[0] == 0xa5);
        return;
    }
    CHECK(out[len] == 0xa5);
    if (len > 0) {
        uint8_t tight = 0xa5;

        CHECK(ss_base64_decode(&tight, 0, &needed, text, text_len, alphabet) == SS_NEED_ROOM);
        CHECK(needed == len && tight == 0xa5);
    }

    /* The digits come back as they were; only padding may have been there or not. */
    ss_base64_encode(again, out, len, alphabet);
    while (text_len > 0 && text[text_len - 1] == '=')
        text_len--;
    CHECK(strlen(again) >= text_len && memcmp(again, text, text_len) == 0);
    CHECK(strspn(again + text_len, "=") == strlen(again + text_len));
    CHECK(alphabet == SS_BASE64_URL || strlen(again) == SS_BASE64_LEN(len));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    static uint8_t back[TEXT_MAX];
    static char text[SS_BASE64_LEN(TEXT_MAX) + 1];
    uint8_t out[TEXT_MAX];
    size_t either_len = 0, len_standard = 0, len_url = 0;
    enum ss_status either, standard, url;

    if (len > TEXT_MAX / 2)
        return 0;

    /* The input as text: either alphabet takes what one of the two takes, and no mixture. */
    check_decoded((const char *)bytes, len, SS_BASE64_STANDARD);
    check_decoded((const char *)bytes, len, SS_BASE64_URL);
    either =
        ss_base64_decode(out, sizeof out, &either_len, (const char *)bytes, len, SS_BASE64_EITHER);
    standard = ss_base64_decode(out, sizeof out, &len_standard, (const char *)bytes, len,
                                SS_BASE64_STANDARD);
    url = ss_base64_decode(out, sizeof out, &len_url, (const char *)bytes, len, SS_BASE64_URL);
    CHECK((either == SS_OK) == (standard == SS_OK || url == SS_OK));
    CHECK(either != SS_OK || either_len == (standard == SS_OK ? len_standard : len_url));

    /* The input as bytes: they survive both alphabets. */
    for (int alphabet = SS_BASE64_STANDARD; alphabet <= SS_BASE64_URL; alphabet++) {
        size_t back_len;

        ss_base64_encode(text, bytes, len, (enum ss_base64_alphabet)alphabet);
        CHECK(ss_base64_decode(back, sizeof back, &back_len, text, strlen(text),
                               (enum ss_base64_alphabet)alphabet) == SS_OK);
        CHECK(back_len == len);
        CHECK(len == 0 || memcmp(back, bytes, len) == 0);
    }
    return 0;
}
