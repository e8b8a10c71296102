/* A pair of datagram sockets on loopback, and payloads that can be told apart. */
#ifndef SS_TESTS_UDP_SUPPORT_H
#define SS_TESTS_UDP_SUPPORT_H

#include "net/udp.h"

struct pair {
    enum ss_family sender_family; /* of the sending socket */
    int receiver, sender;
    struct ss_addr to, sender_addr;
    struct ss_udp_inbox *inbox;
    struct ss_udp_outbox *outbox;
    struct ss_datagram got[SS_UDP_BATCH];
};

struct pair_kind {
    const char *listen; /* the receiver's address */
    const char *to;     /* what the sender sends to */
    const char *from;   /* the sender's address */
};

/* Skips the test where the system has no such addresses. */
void pair_open(struct pair *pair, const struct pair_kind *kind,
               const struct ss_udp_socket_options *receiver_options);
void pair_close(struct pair *pair);

/* Gathers a datagram from the sender to the receiver. */
void pair_send(struct pair *pair, struct ss_view bytes);

/* Waits for datagrams and receives what is there: `got` and how many. Fails after some seconds. */
size_t pair_receive(struct pair *pair);

/* Whether nothing is waiting, and nothing comes in a moment. */
bool pair_is_quiet(struct pair *pair);

/* Waits until a socket has something to read, an error included. */
void wait_readable(int fd);

struct ss_addr address(const char *text, uint16_t port);
uint16_t port_of(int fd);

#define NO_ADDRESS (&(const struct ss_ip){.family = SS_FAMILY_NONE})

/* `len` bytes that depend on `seed`. */
void fill(uint8_t *bytes, size_t len, unsigned seed);
bool is_filled(const uint8_t *bytes, size_t len, unsigned seed);

/* Calls of malloc, calloc and realloc by our code so far. */
unsigned long heap_calls(void);

#endif
