/* SPDX-License-Identifier: BSD-3-Clause */
/* Parses fault lists and draws verdicts by hashing seed and packet, so that timing does not change them. */
#include "wire/fault.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ONE 4294967296.0
#define DEFAULT_SYNDROME 0x02 /* local QP operation error */

/* The finaliser of splitmix64: every input bit reaches every output bit. */
static uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15ull;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ x >> 27) * 0x94d049bb133111ebull;
    return x ^ x >> 31;
}

static const char *parse_chance(const char *s, uint32_t *out)
{
    char *end;
    double v = strtod(s, &end);

    if (end == s || *end != '%' || !(v >= 0 && v <= 100))
        return NULL;
    *out = v >= 100 ? UINT32_MAX : (uint32_t)(v / 100 * ONE);
    return end + 1;
}

static const char *parse_time(const char *s, uint64_t *ns)
{
    char *end;
    double v = strtod(s, &end);
    double unit;
    size_t n = 2;

    if (end == s || !(v >= 0 && v < 1e9))
        return NULL;
    if (!strncmp(end, "us", 2))
        unit = 1e3;
    else if (!strncmp(end, "ms", 2))
        unit = 1e6;
    else if (*end == 's')
        unit = 1e9, n = 1;
    else
        return NULL;
    *ns = (uint64_t)(v * unit);
    return end + n;
}

static const char *parse_count(const char *s, int base, uint64_t *out)
{
    char *end;

    if (*s < '0' || *s > '9')
        return NULL;
    errno = 0;
    *out = strtoull(s, &end, base);
    return errno ? NULL : end;
}

static const char *parse_when(const char *s, struct fault_when *w)
{
    uint64_t n;
    const char *end = parse_count(s, 10, &n);

    if (end && *end == 'p') {
        w->packets = n ? n : 1;
        return end + 1;
    }
    end = parse_time(s, &w->ns);
    if (end && !w->ns)
        w->ns = 1;
    return end;
}

static const char *parse_qperr(const char *s, struct fault_plan *p)
{
    uint64_t n, syndrome = DEFAULT_SYNDROME;
    const char *end = parse_count(s, 10, &n);

    if (end && *end == ':')
        end = parse_count(end + 1, 0, &syndrome);
    if (!end || !n || n > UINT32_MAX || syndrome > 0xff)
        return NULL;
    p->qp_error_after = (uint32_t)n;
    p->qp_error_syndrome = (uint8_t)syndrome;
    return end;
}

static const char *parse_us(const char *s, uint32_t *us)
{
    uint64_t ns;
    const char *end = parse_time(s, &ns);

    if (end)
        *us = (uint32_t)(ns / 1000);
    return end;
}

static const char *parse_delay(const char *s, struct fault_plan *p)
{
    const char *end = parse_chance(s, &p->delay);

    return end && *end == ':' ? parse_us(end + 1, &p->delay_us) : NULL;
}

static const char *parse_link(const char *s, struct fault_plan *p)
{
    const char *end = parse_when(s, &p->link_down);

    return end && *end == '+' ? parse_time(end + 1, &p->link_down_ns) : end;
}

static const char *parse_word(const char *s, const char *word, bool *out)
{
    size_t n = strlen(word);

    *out = !strncmp(s, word, n);
    return *out ? s + n : NULL;
}

static const char *parse_bytes(const char *s, uint64_t *out)
{
    static const char units[] = "kMG";
    const char *end = parse_count(s, 10, out);
    const char *unit = end && *end ? strchr(units, *end) : NULL;

    if (!end || !*out || *out > UINT32_MAX)
        return NULL;
    if (!unit)
        return end;
    *out <<= 10 * (unit - units + 1);
    return end + 1;
}

static const char *parse_pages(const char *s, uint32_t *out)
{
    uint64_t n;
    const char *end = parse_count(s, 10, &n);

    if (!end || !n || n > UINT32_MAX)
        return NULL;
    *out = (uint32_t)n;
    return end;
}

/* One item; returns where it ends, NULL when it is wrong. */
static const char *parse_item(const char *s, struct fault_plan *p)
{
    const char *v = strchr(s, '=');
    size_t n = v ? (size_t)(v - s) : 0;

#define ITEM(name) (n == sizeof(name) - 1 && !memcmp(s, name, n))
    if (!v)
        return NULL;
    v++;
    if (ITEM("loss"))
        return parse_chance(v, &p->loss);
    if (ITEM("dup"))
        return parse_chance(v, &p->dup);
    if (ITEM("reorder"))
        return parse_chance(v, &p->reorder);
    if (ITEM("corrupt"))
        return parse_chance(v, &p->corrupt);
    if (ITEM("rnr"))
        return parse_chance(v, &p->rnr);
    if (ITEM("delay"))
        return parse_delay(v, p);
    if (ITEM("doorbell"))
        return parse_us(v, &p->doorbell_us);
    if (ITEM("qperr"))
        return parse_qperr(v, p);
    if (ITEM("linkdown"))
        return parse_link(v, p);
    if (ITEM("die"))
        return parse_when(v, &p->die);
    if (ITEM("deny"))
        return parse_when(v, &p->deny);
    if (ITEM("port"))
        return parse_word(v, "down", &p->port_down);
    if (ITEM("gids"))
        return parse_word(v, "none", &p->no_gids);
    if (ITEM("memlock"))
        return parse_bytes(v, &p->memlock);
    if (ITEM("pages"))
        return parse_pages(v, &p->pages);
#undef ITEM
    return NULL;
}

int fault_parse(struct fault_plan *plan, const char *spec, uint64_t seed, const char **bad_out)
{
    struct fault_plan *p = calloc(1, sizeof(*p));
    const char *s = spec ? spec : "";

    if (!p)
        return -ENOMEM;
    p->seed = seed;
    while (*s) {
        const char *end = parse_item(s, p);

        if (!end || (*end && *end != ',')) {
            if (bad_out)
                *bad_out = s;
            free(p);
            return -EINVAL;
        }
        s = *end ? end + 1 : end;
    }
    p->any_packet = p->loss || p->dup || p->reorder || p->delay || p->corrupt;
    *plan = *p;
    free(p);
    return 0;
}

static uint32_t draw(const struct fault_plan *plan, uint64_t key, uint32_t times, uint32_t kind)
{
    return (uint32_t)(mix(plan->seed ^ mix(key) ^ mix((uint64_t)times << 32 | kind)) >> 32);
}

static struct fault_bucket *bucket_of(struct fault_plan *plan, uint64_t key, int *way_out)
{
    struct fault_bucket *b = &plan->seen[mix(key) % FAULT_BUCKETS];

    *way_out = -1;
    for (int i = 0; i < FAULT_WAYS; i++)
        if (b->times[i] && b->key[i] == key)
            *way_out = i;
    return b;
}

/* How often the packet was sent since its first fault, 0 at first. */
static uint32_t times_sent(struct fault_plan *plan, uint64_t key)
{
    int way;
    struct fault_bucket *b = bucket_of(plan, key, &way);

    return way < 0 ? 0 : b->times[way]++;
}

static void remember(struct fault_plan *plan, uint64_t key)
{
    int way;
    struct fault_bucket *b = bucket_of(plan, key, &way);

    if (way >= 0)
        return;
    way = (int)(b->next++ % FAULT_WAYS);
    b->key[way] = key;
    b->times[way] = 1;
}

unsigned fault_verdict(struct fault_plan *plan, uint64_t key)
{
    const struct {
        uint32_t chance, verdict;
    } kinds[] = {
        { plan->loss, FAULT_LOSS },   { plan->dup, FAULT_DUP },         { plan->reorder, FAULT_REORDER },
        { plan->delay, FAULT_DELAY }, { plan->corrupt, FAULT_CORRUPT },
    };
    unsigned verdict = 0;
    uint32_t times;

    if (!plan->any_packet)
        return FAULT_NONE;
    times = times_sent(plan, key);
    for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (kinds[i].chance && draw(plan, key, times, kinds[i].verdict) < kinds[i].chance)
            verdict |= kinds[i].verdict;
    if (verdict && !times)
        remember(plan, key);
    return verdict & FAULT_LOSS ? FAULT_LOSS : verdict;
}

bool fault_rnr(struct fault_plan *plan, uint64_t key)
{
    uint32_t times;

    if (!plan->rnr)
        return false;
    key |= 1ull << 63; /* an entry of its own in the table */
    times = times_sent(plan, key);
    if (draw(plan, key, times, 0x80) >= plan->rnr)
        return false;
    if (!times)
        remember(plan, key);
    return true;
}

static size_t add(char *out, size_t len, size_t at, const char *item)
{
    int n = at < len ? snprintf(out + at, len - at, "%s%s", at ? "," : "", item) : 0;

    return at + (size_t)(n > 0 ? n : 0);
}

static size_t add_chance(char *out, size_t len, size_t at, const char *name, uint32_t chance)
{
    char item[64];

    if (!chance)
        return at;
    snprintf(item, sizeof(item), "%s=%.6g%%", name, chance / ONE * 100);
    return add(out, len, at, item);
}

static void when_text(char *out, size_t len, const char *name, const struct fault_when *w)
{
    if (w->packets)
        snprintf(out, len, "%s=%llup", name, (unsigned long long)w->packets);
    else
        snprintf(out, len, "%s=%gus", name, (double)w->ns / 1e3);
}

void fault_print(const struct fault_plan *plan, char *out, size_t len)
{
    char item[128];
    size_t at = 0;

    out[0] = '\0';
    at = add_chance(out, len, at, "loss", plan->loss);
    at = add_chance(out, len, at, "dup", plan->dup);
    at = add_chance(out, len, at, "reorder", plan->reorder);
    at = add_chance(out, len, at, "corrupt", plan->corrupt);
    at = add_chance(out, len, at, "rnr", plan->rnr);
    if (plan->delay) {
        at = add_chance(out, len, at, "delay", plan->delay);
        snprintf(item, sizeof(item), ":%uus", plan->delay_us);
        if (at < len)
            at += (size_t)snprintf(out + at, len - at, "%s", item);
    }
    if (plan->doorbell_us) {
        snprintf(item, sizeof(item), "doorbell=%uus", plan->doorbell_us);
        at = add(out, len, at, item);
    }
    if (plan->qp_error_after) {
        snprintf(item, sizeof(item), "qperr=%u:0x%02x", plan->qp_error_after, plan->qp_error_syndrome);
        at = add(out, len, at, item);
    }
    if (plan->link_down.ns || plan->link_down.packets) {
        when_text(item, sizeof(item), "linkdown", &plan->link_down);
        at = add(out, len, at, item);
        if (plan->link_down_ns && at < len)
            at += (size_t)snprintf(out + at, len - at, "+%gus", (double)plan->link_down_ns / 1e3);
    }
    if (plan->die.ns || plan->die.packets) {
        when_text(item, sizeof(item), "die", &plan->die);
        at = add(out, len, at, item);
    }
    if (plan->deny.ns || plan->deny.packets) {
        when_text(item, sizeof(item), "deny", &plan->deny);
        at = add(out, len, at, item);
    }
    if (plan->port_down)
        at = add(out, len, at, "port=down");
    if (plan->no_gids)
        at = add(out, len, at, "gids=none");
    if (plan->memlock) {
        snprintf(item, sizeof(item), "memlock=%llu", (unsigned long long)plan->memlock);
        at = add(out, len, at, item);
    }
    if (plan->pages) {
        snprintf(item, sizeof(item), "pages=%u", plan->pages);
        add(out, len, at, item);
    }
}
