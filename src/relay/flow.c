/* One direction of a session, with its backpressure. */
#include "relay/flow.h"

#include <assert.h>
#include <string.h>
#include <time.h>

#include "base/container.h"
#include "base/log.h"
#include "net/tcp.h"
#include "relay/dialer.h"
#include "relay/engine_internal.h"
#include "relay/flow_splice.h"
#include "relay/session.h"
#include "relay/session_limits.h"

/* So many full reads in one round of events, then others go first. */
#define FULL_READS_MAX 4

static void pump(struct ss_flow *flow);
static void stop_reading(struct ss_flow *flow);

static int64_t now_s(void)
{
    return (int64_t)time(NULL);
}

/* -- the incomplete message -- */

void ss_flow_drop_rest(struct ss_flow *flow)
{
    if (flow->rest != NULL)
        ss_pool_release(flow->session->worker->blocks, flow->rest);
    flow->rest = NULL;
}

_Static_assert(SS_REST_MAX <= SS_BLOCK_CAPACITY, "what is left of any chunk goes into a block");

bool ss_flow_keep_rest(struct ss_flow *flow, const uint8_t *bytes, size_t len)
{
    struct ss_pool *pool = flow->session->worker->blocks;

    if (len == 0) {
        ss_flow_drop_rest(flow);
        return true;
    }
    if (flow->rest == NULL)
        flow->rest = ss_block_acquire(pool);
    if (flow->rest == NULL || len > SS_BLOCK_CAPACITY)
        return false;
    memcpy(flow->rest->bytes, bytes, len);
    flow->rest->begin = 0;
    flow->rest->end = (uint32_t)len;
    return true;
}

static size_t rest_len(const struct ss_flow *flow)
{
    return flow->rest == NULL ? 0 : flow->rest->end;
}

/* -- to the sink -- */

static struct ss_flow *opposite(struct ss_flow *flow)
{
    return flow == &flow->session->up ? &flow->session->down : &flow->session->up;
}

/* The sink takes no more. What comes back from it may still be worth having, but its end will not
 * be a normal one: the error that would tell has been told to us. */
static void sink_lost(struct ss_flow *flow)
{
    stop_reading(flow);
    flow->ended = true;
    opposite(flow)->suspect = true;
    if (flow->shut)
        return;
    flow->shut = true;
    ss_session_half_open(flow->session);
    ss_session_flow_shut(flow->session);
}

void ss_flow_pass_end_on(struct ss_flow *flow)
{
    struct ss_worker *worker = flow->session->worker;

    if (flow->shut || flow->writing || flow->sink == NULL)
        return;
    if (flow->broken) {
        if (ss_tcp_in_flight(&flow->sink->tcp) == 0 || ss_tcp_error(&flow->sink->tcp) != SS_OK)
            ss_session_abort(flow->session);
        else
            ss_worker_start_deadline(worker, &worker->drain, &flow->session->check);
        return;
    }
    flow->shut = true;
    if (!ss_session_is_over(flow->session)) /* else closing says it */
        ss_tcp_shut(&flow->sink->tcp);
    ss_session_flow_shut(flow->session);
}

static void on_written(uv_write_t *request, int result)
{
    struct ss_conn *sink = request->handle->data;
    struct ss_worker *worker = sink->worker;
    struct ss_block_queue written = {.first = SS_CONTAINER_OF(request, struct ss_block, request)};
    struct ss_flow *flow;

    if (sink->session == NULL) { /* closed meanwhile: the blocks are all that is left */
        for (struct ss_block *block = written.first, *next; block != NULL; block = next) {
            next = block->next;
            ss_pool_release(worker->blocks, block);
        }
        return;
    }
    flow = sink == sink->session->outbound ? &sink->session->up : &sink->session->down;
    flow->writing = false;
    ss_block_queue_clear(&flow->waiting, worker->blocks);
    ss_session_touch(flow->session);
    if (result != 0)
        sink_lost(flow);
    else if (flow->ended)
        ss_flow_pass_end_on(flow);
    else
        ss_flow_read(flow);
}

/* Hands what waits to libuv, which writes it as the kernel takes it. */
static void write_waiting(struct ss_flow *flow)
{
    struct ss_span spans[4];
    uv_buf_t bufs[4]; /* with more, libuv would allocate */
    size_t count = ss_block_queue_spans(&flow->waiting, spans, 4);
    int result;

    for (size_t i = 0; i < count; i++)
        bufs[i] = uv_buf_init((char *)spans[i].ptr, (unsigned)spans[i].len);
    /* All of them: a read fills at most four blocks. */
    assert(spans[count - 1].ptr == flow->waiting.last->bytes + flow->waiting.last->begin);
    flow->writing = true;
    if (!ss_deadline_pending(&flow->session->check))
        ss_worker_start_deadline(flow->session->worker, &flow->session->worker->stall,
                                 &flow->session->check);
    result = uv_write(&flow->waiting.first->request, (uv_stream_t *)&flow->sink->tcp, bufs,
                      (unsigned)count, on_written);
    if (result != 0) {
        flow->writing = false;
        sink_lost(flow);
    }
}

static bool keep(struct ss_flow *flow, const uint8_t *bytes, size_t len)
{
    struct ss_worker *worker = flow->session->worker;

    if (ss_block_queue_append(&flow->waiting, worker->blocks,
                              (struct ss_view){.ptr = bytes, .len = len}))
        return true;
    ss_log_debug("out of blocks: a session ends");
    ss_session_abort(flow->session);
    return false;
}

/* Writes what the sink takes at once, unless bytes wait already, and keeps the rest. False when
 * there is no sink any more, or no session. */
static bool write_or_keep(struct ss_flow *flow, const struct ss_span *spans, size_t count)
{
    size_t written = 0;
    size_t total = 0;

    for (size_t i = 0; i < count; i++)
        total += spans[i].len;
    if (total == 0)
        return true;

    if (flow->sink != NULL && flow->waiting.len == 0) {
        if (ss_tcp_write_now(&flow->sink->tcp, spans, count, &written) != SS_OK) {
            sink_lost(flow);
            return false;
        }
        if (written == total) {
            flow->narrow = false;
            return true;
        }
        flow->narrow = true;
        if (flow->work == SS_FLOW_SEAL)
            ss_codec_write_was_short(ss_session_codec(flow->session));
    }
    ss_flow_pause(flow);
    for (size_t i = 0; i < count; i++) {
        size_t skip = written < spans[i].len ? written : spans[i].len;

        written -= skip;
        if (!keep(flow, spans[i].ptr + skip, spans[i].len - skip))
            return false;
    }
    return true;
}

static void write_kept(struct ss_flow *flow)
{
    if (flow->sink != NULL && flow->waiting.len != 0 && !flow->writing)
        write_waiting(flow);
}

void ss_flow_deliver(struct ss_flow *flow, const struct ss_span *spans, size_t count)
{
    if (write_or_keep(flow, spans, count))
        write_kept(flow);
}

/* Pieces of about one size, the first one as large as any. */
static size_t piece_of(size_t len)
{
    size_t count = (len + SS_SEAL_SIZE - 1) / SS_SEAL_SIZE;

    return count == 0 ? 0 : (len + count - 1) / count;
}

/* Seals plain bytes (on the first call with salt and header in front) and sends them. */
static void seal_and_deliver(struct ss_flow *flow, struct ss_view plain)
{
    struct ss_session *session = flow->session;
    struct ss_worker *worker = session->worker;
    size_t most = piece_of(plain.len);

    do { /* also with nothing at all: the header */
        struct ss_span room = {.ptr = worker->write_scratch, .len = worker->write_scratch_len};
        struct ss_span sealed = room;
        struct ss_view piece = {.ptr = plain.ptr, .len = plain.len < most ? plain.len : most};

        plain.ptr += piece.len;
        plain.len -= piece.len;
        if (ss_codec_seal(ss_session_codec(session), &piece, &room, now_s()) != SS_OK) {
            ss_session_abort(session);
            return;
        }
        session->header_sent = true;
        sealed.len -= room.len;
        if (!write_or_keep(flow, &sealed, 1))
            return;
    } while (plain.len != 0);
    if (ss_codec_seals_as_is(ss_session_codec(session)))
        flow->work = SS_FLOW_COPY;
    write_kept(flow);
}

/* -- from the source -- */

void ss_flow_count(struct ss_flow *flow, size_t len)
{
    struct ss_session *session = flow->session;

    bool up = flow == &session->up;

    ss_count(up ? &session->counters->rx_bytes : &session->counters->tx_bytes, len);
    ss_flow_use_grant(flow, len);
    if (session->user != NULL)
        atomic_fetch_add_explicit(up ? &session->user->rx_bytes : &session->user->tx_bytes, len,
                                  memory_order_relaxed);
}

/* Bytes of a session under way, whole: kept ones in front. */
static void take(struct ss_flow *flow, struct ss_span bytes)
{
    struct ss_session *session = flow->session;
    struct ss_opened opened;
    enum ss_status status;

    switch (flow->work) {
    case SS_FLOW_COPY:
        ss_flow_drop_rest(flow);
        ss_flow_count(flow, bytes.len);
        ss_flow_deliver(flow, &bytes, 1);
        break;
    case SS_FLOW_SEAL:
        ss_flow_drop_rest(flow);
        ss_flow_count(flow, bytes.len);
        if (flow->sink == NULL)
            ss_flow_deliver(flow, &bytes, 1); /* sealed once there is a connection */
        else
            seal_and_deliver(flow, (struct ss_view){.ptr = bytes.ptr, .len = bytes.len});
        break;
    case SS_FLOW_OPEN:
        status = ss_codec_open(ss_session_codec(session), bytes, now_s(), &opened);
        if (status != SS_OK) {
            ss_session_log_opening(session, status);
            ss_session_abort(session);
            return;
        }
        if (!ss_flow_keep_rest(flow, bytes.ptr + bytes.len - opened.rest_len, opened.rest_len)) {
            ss_session_abort(session);
            return;
        }
        if (ss_codec_opens_as_is(ss_session_codec(session)))
            flow->work = SS_FLOW_COPY;
        ss_flow_count(flow, opened.payload_len);
        ss_flow_deliver(flow, opened.payload, opened.count);
        break;
    }
}

/* No more in all than this, so that four blocks hold whatever it is opened to. */
_Static_assert(SS_SEALED_READ_SIZE <= 4 * SS_BLOCK_CAPACITY, "a read fits into four blocks");

/* Bytes that may be read behind the kept ones. Sealed ones so that no chunk is cut, if possible:
 * what is left over has to be copied, and back. */
static size_t room_behind(struct ss_flow *flow, size_t kept)
{
    if (flow->narrow || flow->session->phase <= SS_PHASE_ASSOCIATE)
        return SS_NARROW_READ_SIZE;
    if (flow->work == SS_FLOW_OPEN)
        return ss_codec_open_room(ss_session_codec(flow->session), kept,
                                  SS_SEALED_READ_SIZE - kept);
    return SS_READ_SIZE - kept;
}

static void on_room_wanted(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    struct ss_conn *conn = (struct ss_conn *)handle->data;
    struct ss_flow *flow = conn->flow;
    uint8_t *scratch = conn->worker->read_scratch;
    size_t kept = rest_len(flow);
    size_t room = room_behind(flow, kept);

    (void)suggested;
    if (!flow->paused)
        room = ss_flow_granted(flow, ss_pressure_room(ss_pressure_of(conn->worker->engine), room));
    if (flow->paused || room == 0) { /* libuv tells on_read with UV_ENOBUFS */
        *buf = uv_buf_init(NULL, 0);
        return;
    }
    if (flow->full_reads >= FULL_READS_MAX) { /* what is left is told anew in the next round */
        flow->full_reads = 0;
        flow->yielding = true;
        *buf = uv_buf_init(NULL, 0);
        return;
    }
    if (ss_flow_may_splice(flow)) { /* on_read does it, where a session may be closed */
        flow->splice_room = (uint32_t)room;
        *buf = uv_buf_init(NULL, 0);
        return;
    }
    if (kept != 0)
        memcpy(scratch, flow->rest->bytes, kept);
    *buf = uv_buf_init((char *)scratch + kept, (unsigned)room);
}

/* Memory is short: a little now and then. */
static void go_on_later(struct ss_flow *flow)
{
    struct ss_worker *worker = flow->session->worker;

    ss_flow_pause(flow);
    ss_worker_start_deadline(worker, &worker->throttle, &flow->throttle);
}

void ss_flow_came(struct ss_flow *flow, size_t len)
{
    struct ss_session *session = flow->session;

    flow->moved = true;
    flow->bulk = len >= SS_SPLICE_MIN;
    if (flow == &session->up)
        ss_count(&session->counters->rx_wire_bytes, len);
    if (ss_pressure_of(session->worker->engine) == SS_PRESSURE_AT &&
        session->phase >= SS_PHASE_DIAL)
        go_on_later(flow);
}

static void on_read(uv_stream_t *stream, ssize_t got, const uv_buf_t *buf)
{
    struct ss_conn *conn = stream->data;
    struct ss_session *session = conn->session;
    struct ss_flow *flow = conn->flow;
    struct ss_span bytes;

    if (got == 0)
        return;
    if (got == UV_ENOBUFS && flow->yielding) {
        flow->yielding = false;
        return;
    }
    if (got == UV_ENOBUFS && flow->splice_room != 0) {
        ss_flow_splice(flow);
        return;
    }
    if (got == UV_ENOBUFS) {
        flow->reading = false;
        uv_read_stop(stream);
        if (flow->starved)
            ss_flow_starve(flow);
        return;
    }
    ss_session_touch(session);
    if (got < 0) {
        /* Without a buffer libuv has seen the hang-up alone, which a reset shows as well. */
        bool broken = got != UV_EOF || flow->suspect ||
                      (buf->base == NULL && ss_tcp_error(&conn->tcp) != SS_OK);

        ss_session_source_ended(session, flow, broken);
        return;
    }
    if ((size_t)got < buf->len)
        flow->full_reads = 0;
    else
        flow->full_reads++;
    ss_flow_came(flow, (size_t)got);
    bytes.ptr = session->worker->read_scratch;
    bytes.len = rest_len(flow) + (size_t)got;
    if (session->phase <= SS_PHASE_ASSOCIATE)
        ss_session_request_bytes(session, bytes);
    else
        take(flow, bytes);
}

void ss_flow_read_ahead(struct ss_conn *connecting)
{
    int result = uv_read_start((uv_stream_t *)&connecting->tcp, on_room_wanted, on_read);

    assert(result == 0); /* it is open, and of a kind that can be read */
    (void)result;
}

void ss_flow_read(struct ss_flow *flow)
{
    if (flow->ended || flow->waiting.len != 0 || ss_deadline_pending(&flow->throttle))
        return;
    flow->paused = false;
    if (flow->reading)
        return;
    /* Fails only on a closing handle, and a session with one is gone. */
    flow->reading = uv_read_start((uv_stream_t *)&flow->source->tcp, on_room_wanted, on_read) == 0;
}

void ss_flow_pause(struct ss_flow *flow)
{
    flow->paused = true;
}

/* For good: nothing more is wanted of the source. */
static void stop_reading(struct ss_flow *flow)
{
    if (!flow->reading)
        return;
    flow->reading = false;
    uv_read_stop((uv_stream_t *)&flow->source->tcp);
}

/* -- begin and end -- */

/* What came before there was a connection, as it is: written where it lies. */
static void send_early(struct ss_flow *flow)
{
    struct ss_pool *pool = flow->session->worker->blocks;
    struct ss_span spans[4];
    size_t count = ss_block_queue_spans(&flow->waiting, spans, 4);
    size_t written;

    if (ss_tcp_write_now(&flow->sink->tcp, spans, count, &written) != SS_OK) {
        sink_lost(flow);
        return;
    }
    ss_block_queue_consume(&flow->waiting, pool, written);
    if (flow->waiting.len != 0)
        write_waiting(flow);
}

/* The same to be sealed: block by block into one scratch, so that it leaves in one write. */
static void seal_early(struct ss_flow *flow)
{
    struct ss_session *session = flow->session;
    struct ss_worker *worker = session->worker;
    struct ss_block_queue early = flow->waiting;
    struct ss_span room = {.ptr = worker->write_scratch, .len = worker->write_scratch_len};
    struct ss_span sealed = room;
    enum ss_status status = SS_OK;

    flow->waiting = (struct ss_block_queue){0};
    for (struct ss_block *block = early.first; block != NULL && status == SS_OK;
         block = block->next) {
        struct ss_view plain = {.ptr = block->bytes + block->begin,
                                .len = block->end - block->begin};

        status = ss_codec_seal(ss_session_codec(session), &plain, &room, now_s());
    }
    ss_block_queue_clear(&early, worker->blocks);
    if (status != SS_OK) {
        ss_session_abort(session);
        return;
    }
    session->header_sent = true;
    sealed.len -= room.len;
    ss_flow_deliver(flow, &sealed, 1);
}

void ss_flow_connect(struct ss_flow *flow, struct ss_conn *sink, bool header_now)
{
    struct ss_session *session = flow->session;

    flow->sink = sink;
    if (flow->waiting.len != 0 && flow->work == SS_FLOW_SEAL)
        seal_early(flow);
    else if (flow->waiting.len != 0)
        send_early(flow);
    else if (flow->work == SS_FLOW_SEAL && (header_now || flow->ended))
        ss_flow_send_header(flow);
    if (session->phase != SS_PHASE_CLOSING)
        pump(flow);
}

void ss_flow_send_header(struct ss_flow *flow)
{
    if (!flow->session->header_sent)
        seal_and_deliver(flow, (struct ss_view){0});
}

/* Goes on with what the flow's state asks for. */
static void pump(struct ss_flow *flow)
{
    if (flow->ended)
        ss_flow_pass_end_on(flow);
    else
        ss_flow_read(flow);
}

void ss_flow_end(struct ss_flow *flow, bool broken)
{
    struct ss_session *session = flow->session;

    stop_reading(flow);
    if (flow->ended)
        return;
    flow->ended = true;
    flow->broken = broken;
    if (broken) {
        /* The source is gone as a sink, too. */
        stop_reading(opposite(flow));
        opposite(flow)->ended = opposite(flow)->shut = true;
        if (flow == &session->down && session->fast_opened && !flow->moved)
            ss_dial_fast_open_failed(session);
    }
    ss_session_half_open(session);
    if (!broken && flow->work == SS_FLOW_OPEN &&
        !ss_codec_may_end(ss_session_codec(session), rest_len(flow)))
        flow->broken = true;
    if (!broken && flow->work == SS_FLOW_SEAL && flow->sink != NULL && flow == &session->up)
        ss_flow_send_header(flow);
    if (session->phase != SS_PHASE_CLOSING)
        ss_flow_pass_end_on(flow);
}

void ss_flow_clear(struct ss_flow *flow)
{
    struct ss_pool *pool = flow->session->worker->blocks;

    if (flow->rest != NULL)
        ss_pool_release(pool, flow->rest);
    flow->rest = NULL;
    if (!flow->writing) /* else on_written gives them back */
        ss_block_queue_clear(&flow->waiting, pool);
}
