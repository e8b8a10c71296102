/*
 * Redirected datagrams (TPROXY): where they were going, and their answers, which leave from there.
 *
 * An answer is sent by a socket that is bound to the address which it comes from. Such sockets are
 * kept, a bounded number of them; the one that was used least recently makes way. For this folder
 * alone.
 */
#ifndef SS_RELAY_UDP_REDIRECT_H
#define SS_RELAY_UDP_REDIRECT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/span.h"
#include "base/status.h"
#include "net/udp.h"
#include "proto/target.h"

struct ss_association;
struct ss_udp_answers;
struct ss_udp_port;
struct ss_udp_relay;

/* At most `capacity` sockets, at least 1. */
SS_CHECKED enum ss_status ss_udp_answers_new(struct ss_udp_answers **out,
                                             struct ss_udp_relay *relay, uint32_t capacity);
/* When the handles are gone; NULL is fine. */
void ss_udp_answers_free(struct ss_udp_answers *answers);

/* From here on `answers` may be NULL. Of a port that is closed, or of all (NULL). */
void ss_udp_answers_close(struct ss_udp_answers *answers, const struct ss_udp_port *port);
/* Those that have had nothing to do for a while. */
void ss_udp_answers_expire(struct ss_udp_answers *answers, uint64_t now_ms);
/* When the next of them will be; 0: there is none. */
uint64_t ss_udp_answers_due_ms(struct ss_udp_answers *answers);
/* As ss_pool_trim. */
uint32_t ss_udp_answers_trim(struct ss_udp_answers *answers);

/*
 * The target of a redirected datagram; *address is the same as on the wire, in the room in front of
 * the payload. False when it is not to be relayed.
 */
bool ss_udp_redirect_target(struct ss_udp_port *port, const struct ss_datagram *datagram,
                            struct ss_target *target, struct ss_view *address);

/* Sends the client of an association what came from `origin`, from that address. */
void ss_udp_redirect_answer(struct ss_association *association, const struct ss_target *origin,
                            struct ss_view payload);

#endif
