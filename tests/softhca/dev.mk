# SPDX-License-Identifier: BSD-3-Clause
# Plain build of the virtual NIC while there is no configure script: make -f tests/softhca/dev.mk O=<folder> [SAN=address,undefined]
T := tests/softhca
O ?= /tmp/softhca-build
CC ?= gcc
CFLAGS ?= -O2 -g
ALL_CFLAGS = -std=gnu11 -D_GNU_SOURCE= -I$(T) -fPIC -fvisibility=hidden -pthread -Wall -Wextra -Wshadow -Werror $(CFLAGS) $(if $(SAN),-fsanitize=$(SAN) -fno-omit-frame-pointer)
LDFLAGS_ALL = -pthread $(if $(SAN),-fsanitize=$(SAN))

LIB_SRC := $(wildcard $(T)/preload/*.c $(T)/uverbs/*.c $(T)/fw/*.c $(T)/hca/*.c $(T)/engine/*.c $(T)/wire/*.c $(T)/mem/*.c)
LIB_OBJ := $(LIB_SRC:%.c=$(O)/%.o)
RUN_OBJ := $(O)/$(T)/tools/softhca-run.o $(O)/$(T)/tools/jobdir.o

all: $(O)/libsofthca.so $(O)/softhca-run $(O)/softhca-stat

$(O)/libsofthca.so: $(LIB_OBJ)
	$(CC) -shared -o $@ $^ $(LDFLAGS_ALL) -ldl

$(O)/softhca-run: $(RUN_OBJ)
	$(CC) -o $@ $^

STAT_OBJ := $(O)/$(T)/tools/softhca-stat.o $(O)/plain/ctl_client.o
$(O)/softhca-stat: $(STAT_OBJ)
	$(CC) -o $@ $^

$(O)/plain/ctl_client.o: override SAN :=
$(O)/plain/ctl_client.o: $(T)/wire/ctl_client.c
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -c $< -o $@

$(O)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -MMD -c $< -o $@

$(O)/$(T)/tools/%.o: override SAN :=

-include $(LIB_OBJ:.o=.d) $(RUN_OBJ:.o=.d)
.PHONY: all
