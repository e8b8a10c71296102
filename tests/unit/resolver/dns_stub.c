/* Reads one question, writes one answer; see the header for what it says to which name. */
#include "unit/resolver/dns_stub.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/bytes.h"

#define TYPE_A     1
#define TYPE_CNAME 5
#define TYPE_SOA   6
#define TYPE_AAAA  28
#define HEADER_LEN 12

enum rcode { NOERROR = 0, SERVFAIL = 2, NXDOMAIN = 3, REFUSED = 5 };

struct question {
    char name[320]; /* longer than DNS allows */
    char label[64]; /* the first one */
    uint16_t type;
    size_t len; /* of the section on the wire */
};

static void read_question(struct question *question, const uint8_t *packet, size_t len)
{
    struct ss_reader in = {packet, len};
    size_t used = 0;
    uint8_t label_len = 0;
    uint16_t class;

    memset(question, 0, sizeof *question);
    assert_true(ss_read_skip(&in, HEADER_LEN));
    for (;;) {
        assert_true(ss_read_u8(&in, &label_len));
        if (label_len == 0)
            break;
        assert_true(label_len < 64 && used + label_len + 2 < sizeof question->name);
        assert_true(ss_read_bytes(&in, question->name + used, label_len));
        if (used == 0)
            memcpy(question->label, question->name, label_len);
        used += label_len;
        question->name[used++] = '.';
    }
    assert_true(ss_read_u16be(&in, &question->type));
    assert_true(ss_read_u16be(&in, &class));
    assert_int_equal(class, 1);
    question->len = len - HEADER_LEN - in.len;
}

/* The number behind `word` in a label of the name, or `otherwise`. */
static uint32_t number_in(const struct question *question, const char *word, uint32_t otherwise)
{
    const char *found = strstr(question->name, word);

    return found != NULL ? (uint32_t)strtoul(found + strlen(word), NULL, 10) : otherwise;
}

/* The record's name is the one that stands at `name_at` in the answer. */
static void write_record(struct ss_writer *out, const struct question *question, size_t name_at,
                         uint16_t type, const uint8_t *data, uint16_t len)
{
    const char *of_type = question->type == TYPE_A ? ".a-ttl" : ".aaaa-ttl";
    const uint32_t ttl = number_in(question, of_type, number_in(question, ".ttl", 60));

    assert_true(ss_write_u16be(out, (uint16_t)(0xc000 | name_at)));
    assert_true(ss_write_u16be(out, type));
    assert_true(ss_write_u16be(out, 1));
    assert_true(ss_write_u16be(out, (uint16_t)(ttl >> 16)));
    assert_true(ss_write_u16be(out, (uint16_t)ttl));
    assert_true(ss_write_u16be(out, len));
    assert_true(ss_write_bytes(out, data, len));
}

static void write_address(struct ss_writer *out, const struct question *question, size_t name_at,
                          uint16_t type, uint8_t number)
{
    uint8_t ipv4[4] = {192, 0, 2, number};
    uint8_t ipv6[16] = {0x20, 0x01, 0x0d, 0xb8, [15] = number};

    if (type == TYPE_A)
        write_record(out, question, name_at, type, ipv4, sizeof ipv4);
    else
        write_record(out, question, name_at, type, ipv6, sizeof ipv6);
}

/* Returns the number of records. */
static uint16_t write_records(struct ss_writer *out, const struct question *question)
{
    static const uint8_t alias[] = {5, 'a', 'l', 'i', 'a', 's', 0xc0, HEADER_LEN};
    static const uint8_t mapped[16] = {[10] = 0xff, [11] = 0xff, 192, 0, 2, 1};
    const char *label = question->label;
    const uint16_t type = question->type;
    uint16_t count = 1;

    if (strncmp(label, "many", 4) == 0) {
        for (count = 0; count < 20; count++)
            write_address(out, question, HEADER_LEN, type, (uint8_t)(count + 1));
    } else if (strcmp(label, "double") == 0) {
        for (count = 0; count < 4; count++)
            write_address(out, question, HEADER_LEN, type, (uint8_t)(count / 2 + 1));
    } else if (strcmp(label, "mapped") == 0 && type == TYPE_AAAA) {
        write_record(out, question, HEADER_LEN, type, mapped, sizeof mapped);
    } else if (strcmp(label, "cname") == 0) {
        const size_t alias_at = HEADER_LEN + question->len + 12; /* the record's data */

        write_record(out, question, HEADER_LEN, TYPE_CNAME, alias, sizeof alias);
        write_address(out, question, alias_at, type, 1);
        count = 2;
    } else {
        write_address(out, question, HEADER_LEN, type, 1);
    }
    return count;
}

/* The authority section of a "no": the root's SOA with 3,600 seconds to live and this minimum. */
static void write_soa(struct ss_writer *out, uint32_t minimum)
{
    uint8_t data[22] = {0}; /* two names that are the root, then five numbers */

    assert_true(ss_write_u8(out, 0));
    assert_true(ss_write_u16be(out, TYPE_SOA));
    assert_true(ss_write_u16be(out, 1));
    assert_true(ss_write_u16be(out, 0));
    assert_true(ss_write_u16be(out, 3600));
    ss_store_u16be(data + 18, (uint16_t)(minimum >> 16));
    ss_store_u16be(data + 20, (uint16_t)minimum);
    assert_true(ss_write_u16be(out, sizeof data));
    assert_true(ss_write_bytes(out, data, sizeof data));
}

static bool has_family(const char *label, uint16_t type)
{
    if (strcmp(label, "none") == 0)
        return false;
    if (strcmp(label, "four") == 0 || strcmp(label, "many4") == 0)
        return type == TYPE_A;
    if (strcmp(label, "six") == 0)
        return type == TYPE_AAAA;
    return true;
}

static enum rcode rcode_of(const char *label, uint16_t type)
{
    if (strcmp(label, "nx") == 0)
        return NXDOMAIN;
    if (strcmp(label, "refused") == 0)
        return REFUSED;
    if (strcmp(label, "servfail") == 0 || (strcmp(label, "fail4") == 0 && type == TYPE_A) ||
        (strcmp(label, "fail6") == 0 && type == TYPE_AAAA))
        return SERVFAIL;
    return NOERROR;
}

static size_t write_answer(uint8_t *answer, const uint8_t *packet, const struct question *question,
                           bool over_tcp)
{
    struct ss_writer out = {answer + HEADER_LEN, DNS_STUB_PACKET_MAX - HEADER_LEN};
    const enum rcode rcode = rcode_of(question->label, question->type);
    const bool cut = strcmp(question->label, "cut") == 0 && !over_tcp;
    uint16_t count = 0;
    bool soa = false;

    assert_true(ss_write_bytes(&out, packet + HEADER_LEN, question->len));
    if (rcode == NOERROR && !cut && has_family(question->label, question->type))
        count = write_records(&out, question);
    else if (rcode == NOERROR || rcode == NXDOMAIN)
        soa = number_in(question, ".soa", 0) != 0;
    if (soa)
        write_soa(&out, number_in(question, ".soa", 0));
    memset(answer, 0, HEADER_LEN);
    memcpy(answer, packet, 2);
    answer[2] = (uint8_t)(0x81 | (cut ? 0x02 : 0)); /* a response, recursion was wanted */
    answer[3] = (uint8_t)(0x80 | rcode);
    answer[5] = 1;
    answer[7] = (uint8_t)count;
    answer[9] = soa;
    return DNS_STUB_PACKET_MAX - out.len;
}

static void send_udp(struct dns_stub *stub, const struct sockaddr *peer, uint8_t *answer,
                     size_t len)
{
    uv_buf_t buf = uv_buf_init((char *)answer, (unsigned)len);

    assert_int_equal(uv_udp_try_send(&stub->udp, &buf, 1, peer), len);
}

static void note_question(struct dns_stub *stub, const struct question *question, uint16_t port)
{
    if (stub->asked < sizeof stub->peer_ports / sizeof stub->peer_ports[0])
        stub->peer_ports[stub->asked] = port;
    stub->asked++;
    memcpy(stub->last_name, question->name, sizeof stub->last_name);
}

static void on_datagram(uv_udp_t *udp, ssize_t len, const uv_buf_t *buf,
                        const struct sockaddr *peer, unsigned flags)
{
    struct dns_stub *stub = udp->data;
    uint8_t answer[DNS_STUB_PACKET_MAX] = {0};
    struct sockaddr_in from;
    struct question question;
    size_t answer_len;

    (void)flags;
    assert_true(len >= 0);
    if (peer == NULL)
        return;
    memcpy(&from, peer, sizeof from);
    read_question(&question, (const uint8_t *)buf->base, (size_t)len);
    note_question(stub, &question, ntohs(from.sin_port));
    if (strcmp(question.label, "silent") == 0)
        return;
    answer_len = write_answer(answer, (const uint8_t *)buf->base, &question, false);
    if (strcmp(question.label, "holdboth") == 0 ||
        strcmp(question.label, question.type == TYPE_A ? "hold4" : "hold6") == 0) {
        struct dns_stub_held *held = &stub->held[stub->held_count++];

        assert_true(stub->held_count <= sizeof stub->held / sizeof stub->held[0]);
        memcpy(&held->peer, &from, sizeof from);
        memcpy(held->answer, answer, answer_len);
        held->len = answer_len;
        return;
    }
    if (strcmp(question.label, "broken") == 0)
        stub->breakage(answer, &answer_len, question.name);
    send_udp(stub, peer, answer, answer_len);
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    static char packet[DNS_STUB_PACKET_MAX];

    (void)handle;
    (void)suggested;
    *buf = uv_buf_init(packet, sizeof packet);
}

static void on_client_closed(uv_handle_t *client)
{
    struct dns_stub *stub = client->data;

    stub->tcp_clients--;
    free(client);
}

/* A question on TCP is small and comes in one piece on loopback. */
static void on_stream(uv_stream_t *client, ssize_t len, const uv_buf_t *buf)
{
    struct dns_stub *stub = client->data;
    uint8_t answer[2 + DNS_STUB_PACKET_MAX];
    const uint8_t *bytes = (const uint8_t *)buf->base;

    if (len < 0) {
        uv_close((uv_handle_t *)client, on_client_closed);
        return;
    }
    while (len > 2) {
        const size_t packet_len = ss_load_u16be(bytes);
        struct question question;
        uv_buf_t out;

        assert_true((size_t)len >= 2 + packet_len);
        read_question(&question, bytes + 2, packet_len);
        stub->asked_tcp++;
        out.len = write_answer(answer + 2, bytes + 2, &question, true);
        ss_store_u16be(answer, (uint16_t)out.len);
        out = uv_buf_init((char *)answer, (unsigned)out.len + 2);
        assert_int_equal(uv_try_write(client, &out, 1), out.len);
        bytes += 2 + packet_len;
        len -= (ssize_t)(2 + packet_len);
    }
}

static void on_connection(uv_stream_t *listener, int status)
{
    uv_tcp_t *client = malloc(sizeof *client);

    assert_int_equal(status, 0);
    assert_non_null(client);
    uv_tcp_init(listener->loop, client);
    client->data = listener->data;
    ((struct dns_stub *)client->data)->tcp_clients++;
    assert_int_equal(uv_accept(listener, (uv_stream_t *)client), 0);
    uv_read_start((uv_stream_t *)client, on_alloc, on_stream);
}

void dns_stub_start(struct dns_stub *stub, uv_loop_t *loop)
{
    struct sockaddr_in addr;
    int error = -1;

    memset(stub, 0, sizeof *stub);
    /* The same port for both, of those that the system does not give to connections. */
    for (int i = 0; i < 200 && error != 0; i++) {
        const int port = 10000 + (int)((uv_hrtime() / 64 + (uint64_t)getpid() * 7919) % 22000);

        uv_udp_init(loop, &stub->udp);
        uv_tcp_init(loop, &stub->tcp);
        uv_ip4_addr("127.0.0.1", port, &addr);
        error = uv_udp_bind(&stub->udp, (const struct sockaddr *)&addr, 0);
        if (error == 0)
            error = uv_tcp_bind(&stub->tcp, (const struct sockaddr *)&addr, 0);
        if (error == 0)
            error = uv_listen((uv_stream_t *)&stub->tcp, 8, on_connection);
        if (error != 0) {
            uv_close((uv_handle_t *)&stub->udp, NULL);
            uv_close((uv_handle_t *)&stub->tcp, NULL);
            uv_run(loop, UV_RUN_NOWAIT); /* their close callbacks */
        }
    }
    assert_int_equal(error, 0);
    stub->tcp.data = stub;
    snprintf(stub->address, sizeof stub->address, "127.0.0.1:%d", ntohs(addr.sin_port));
    dns_stub_listen(stub);
}

void dns_stub_listen(struct dns_stub *stub)
{
    stub->udp.data = stub;
    assert_int_equal(uv_udp_recv_start(&stub->udp, on_alloc, on_datagram), 0);
}

void dns_stub_release(struct dns_stub *stub)
{
    for (unsigned i = 0; i < stub->held_count; i++)
        send_udp(stub, (const struct sockaddr *)&stub->held[i].peer, stub->held[i].answer,
                 stub->held[i].len);
    stub->held_count = 0;
}

void dns_stub_stop(struct dns_stub *stub)
{
    uv_close((uv_handle_t *)&stub->udp, NULL);
    uv_close((uv_handle_t *)&stub->tcp, NULL);
}
