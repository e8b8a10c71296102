/* `dscp`: ports of ss-redir whose connections to the server carry a mark of their own (RFC 2474).
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <jansson.h>

#include "base/log.h"
#include "config/config_internal.h"

#define PORTS_MAX 64
#define DSCP_MAX  63

/* "EF", "CS0" to "CS7", "AF11" to "AF43" in any case, or a number as C writes it. */
static bool parse(uint8_t *dscp, const char *text)
{
    char *end;
    long number;

    if (strcasecmp(text, "EF") == 0) {
        *dscp = 46;
        return true;
    }
    if (strncasecmp(text, "CS", 2) == 0 && text[2] >= '0' && text[2] <= '7' && text[3] == '\0') {
        *dscp = (uint8_t)(8 * (text[2] - '0'));
        return true;
    }
    if (strncasecmp(text, "AF", 2) == 0 && text[2] >= '1' && text[2] <= '4' && text[3] >= '1' &&
        text[3] <= '3' && text[4] == '\0') {
        *dscp = (uint8_t)(8 * (text[2] - '0') + 2 * (text[3] - '0'));
        return true;
    }
    number = strtol(text, &end, 0);
    if (*text == '\0' || *end != '\0' || number < 0 || number > DSCP_MAX)
        return false;
    *dscp = (uint8_t)number;
    return true;
}

static enum ss_status take(struct ss_config_dscp *entry, const char *port_text, const json_t *value)
{
    uint32_t port;

    if (!ss_number_parse(&port, port_text, 1, UINT16_MAX)) {
        ss_log_error("invalid config file: dscp: '%s' is not a port from 1 to 65535", port_text);
        return SS_ERR_ARGUMENT;
    }
    entry->port = (uint16_t)port;
    if (json_is_integer(value) && json_integer_value(value) >= 0 &&
        json_integer_value(value) <= DSCP_MAX) {
        entry->value = (uint8_t)json_integer_value(value);
        return SS_OK;
    }
    if (!json_is_string(value))
        return ss_key_error("dscp: ", port_text, "a string or a number from 0 to 63");
    if (!parse(&entry->value, json_string_value(value)))
        ss_log_error("Invalid DSCP value (%s)", json_string_value(value));
    return SS_OK;
}

enum ss_status ss_config_dscp_read(struct ss_config_dscp **list, size_t *count, const json_t *value)
{
    const char *port_text;
    json_t *entry;

    if (json_is_null(value))
        return SS_OK;
    if (!json_is_object(value))
        return ss_key_error("", "dscp", "an object of ports and their DSCP");
    json_object_foreach((json_t *)(uintptr_t)value, port_text, entry)
    {
        struct ss_config_dscp *grown;
        enum ss_status status;

        if (*count == PORTS_MAX) {
            ss_log_warn("dscp: only %d ports are used; %s is left out", PORTS_MAX, port_text);
            continue;
        }
        grown = ss_array_grow(*list, count, sizeof *grown);
        if (grown == NULL)
            return SS_ERR_MEMORY;
        *list = grown;
        status = take(&grown[*count - 1], port_text, entry);
        if (status != SS_OK)
            return status;
    }
    return SS_OK;
}
