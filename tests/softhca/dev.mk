# SPDX-License-Identifier: BSD-3-Clause
# Build of the virtual NIC without the configure script: make -f tests/softhca/dev.mk O=<folder> [SAN=address,undefined]
# With the target check, its own clients run there as well, and so does the sanitizer on their side.
T := tests/softhca
O ?= /tmp/softhca-build
CC ?= gcc
CFLAGS ?= -O2 -g
ALL_CFLAGS = -std=gnu11 -D_GNU_SOURCE= -I$(T) -fPIC -fvisibility=hidden -pthread -Wall -Wextra -Wshadow -Werror $(CFLAGS) $(if $(SAN),-fsanitize=$(SAN) -fno-omit-frame-pointer)
LDFLAGS_ALL = -pthread $(if $(SAN),-fsanitize=$(SAN))

LIB_SRC := $(wildcard $(T)/preload/*.c $(T)/uverbs/*.c $(T)/fw/*.c $(T)/hca/*.c $(T)/engine/*.c $(T)/wire/*.c $(T)/mem/*.c)
LIB_OBJ := $(LIB_SRC:%.c=$(O)/%.o)
RUN_OBJ := $(O)/$(T)/tools/softhca-run.o $(O)/$(T)/tools/jobdir.o $(O)/$(T)/tools/settings.o $(O)/plain/fault.o

all: $(O)/libsofthca.so $(O)/softhca-run $(O)/softhca-stat

$(O)/libsofthca.so: $(LIB_OBJ)
	$(CC) -shared -o $@ $^ $(LDFLAGS_ALL) -ldl

$(O)/softhca-run: $(RUN_OBJ)
	$(CC) -o $@ $^

STAT_OBJ := $(O)/$(T)/tools/softhca-stat.o $(O)/plain/ctl_client.o
$(O)/softhca-stat: $(STAT_OBJ)
	$(CC) -o $@ $^

$(O)/plain/%.o: override SAN :=
$(O)/plain/%.o: $(T)/wire/%.c
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -c $< -o $@

CLIENTS := $(patsubst %,$(O)/tests/%,devx_client check_errno check_events check_mr check_rails check_threads fuzz_cmd)
UNITS := $(patsubst %,$(O)/tests/%,check_wqe check_wire check_hostile)
NIC_OBJ := $(filter $(foreach d,hca engine wire mem,$(O)/$(T)/$(d)/%),$(LIB_OBJ))

$(CLIENTS): $(O)/tests/%: $(O)/$(T)/tests/%.o
	@mkdir -p $(@D)
	$(CC) -o $@ $^ $(LDFLAGS_ALL) -lmlx5 -libverbs

$(UNITS): $(O)/tests/%: $(O)/$(T)/tests/%.o $(O)/$(T)/tests/nic.o $(O)/$(T)/tests/fake_events.o $(NIC_OBJ)
	@mkdir -p $(@D)
	$(CC) -o $@ $^ $(LDFLAGS_ALL) -ldl

# A fixed layout of addresses and threads in a child are what ThreadSanitizer would refuse.
check: export TSAN_OPTIONS ?= die_after_fork=0
check: all $(CLIENTS) $(UNITS)
	for unit in $(UNITS); do setarch -R $$unit || exit 1; done
	SOFTHCA_RUN=$(O)/softhca-run SOFTHCA_BIN=$(O)/tests setarch -R $(T)/tests/own_clients.sh

$(O)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -MMD -c $< -o $@

$(O)/$(T)/tools/%.o: override SAN :=

-include $(LIB_OBJ:.o=.d) $(RUN_OBJ:.o=.d)
.PHONY: all check
