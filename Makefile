# SPDX-License-Identifier: MIT
#
# aclmem: module, library, tools and tests. "make help" lists the targets.
#
# Everything that is made lies in build/: kmod/RELEASE (the module for one
# kernel), lib, tools, selftests; and, brought by tools/setup, kernels and
# linux-source. The module is built through a directory of symbolic links to
# its sources, since kbuild writes beside them.

VERSION := 0.1.0

ifeq ($(MAKELEVEL),0)
MAKEFLAGS += -j$(shell nproc)
endif
MAKEFLAGS += --no-print-directory --no-builtin-rules

.SUFFIXES:
.DELETE_ON_ERROR:

CC := gcc
AR := ar
CFLAGS ?= -O2 -g
INSTALL := install

PREFIX ?= /usr/local
BINDIR ?= $(PREFIX)/bin
LIBDIR ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
MODDIR ?= /lib/modules/$(KREL)/updates
UDEVDIR ?= /usr/lib/udev/rules.d

.PHONY: all
all: module lib tools

# --- which kernels ------------------------------------------------------------
#
# KDIR=DIRECTORY or KREL=RELEASE name one. Otherwise it is the running kernel if
# its headers are here, or else the two that tools/vm boots.

vm_kernels := 6.1 6.12
vm_release = $(shell tools/vm --kernel $(1) --which)

ifdef KDIR
KREL ?= $(shell cat $(KDIR)/include/config/kernel.release)
else
running := $(shell uname -r)
ifneq ($(KREL)$(wildcard /lib/modules/$(running)/build/Makefile),)
KREL ?= $(running)
endif
KDIR = /lib/modules/$*/build
endif

.PHONY: module
ifneq ($(KREL),)
module: build/kmod/$(KREL)/aclmem.ko
else
module: vm-modules
	@echo "There are no headers of the running kernel ($(running)): made the module for"
	@echo "tools/vm's kernels instead. KDIR=DIRECTORY or KREL=RELEASE name another."
endif

.PHONY: vm-modules
ifneq ($(filter vm-modules test,$(or $(MAKECMDGOALS),all))$(if $(KREL),,x),)
vm_releases := $(foreach k,$(or $(KERNEL),$(vm_kernels)),$(call vm_release,$(k)))
vm-modules: $(vm_releases:%=build/kmod/%/aclmem.ko)
endif

# $(call links,DIRECTORY,FILES): DIRECTORY holds links to just these sources. Those
# that are right stay untouched, as another make may be reading through them.
define links
mkdir -p $(1)
find $(1) -maxdepth 1 -type l ! -exec test -e {} \; -delete
ln -sr $(2) $(1)/ 2>/dev/null || true
endef

kbuild = flock build/kmod/$*.lock $(MAKE) -C $(KDIR) M=$(CURDIR)/$(@D) modules

build/kmod/%/aclmem.ko: FORCE
	@test -e $(KDIR)/Makefile || { echo "no kernel headers in $(KDIR): run sh tools/setup" >&2; exit 1; }
	@$(call links,$(@D),Kbuild uapi)
	@$(call links,$(@D)/kmod,$(wildcard kmod/*.[ch]))
	+@$(kbuild)

.PHONY: FORCE
FORCE:

# --- library --------------------------------------------------------------------

strict := -std=c17 -D_GNU_SOURCE -Wall -Wextra -Werror
cppflags := -Ilib/include -Iuapi
cflags = $(strict) $(cppflags) $(CFLAGS) -fPIC -pthread -MMD -MP

lib_objects := $(patsubst lib/%.c,build/lib/%.o,$(wildcard lib/*.c))
libraries := $(addprefix build/lib/,libaclmem.so.0 libaclmem.so libascendcl.so libaclmem.a)

.PHONY: lib
lib: $(libraries)

build/lib build/tools:
	@mkdir -p $@

build/lib/%.o: lib/%.c Makefile | build/lib
	@echo "  CC      $@"
	@$(CC) $(cflags) -c -o $@ $<

# Symbols stay interposable: people preload their own versions of these calls. Once
# loaded the library stays, since fork() calls it.
build/lib/libaclmem.so.0: $(lib_objects)
	@echo "  LD      $@"
	@$(CC) $(CFLAGS) $(LDFLAGS) -shared -pthread -Wl,-soname,libaclmem.so.0 -Wl,-z,defs \
		-Wl,-z,nodelete \
		-o $@ $^

build/lib/libaclmem.so build/lib/libascendcl.so: build/lib/libaclmem.so.0
	@ln -sf libaclmem.so.0 $@

build/lib/libaclmem.a: $(lib_objects)
	@echo "  AR      $@"
	@rm -f $@
	@$(AR) rcs $@ $^

# --- tools: every C file in tools/ is a program -----------------------------------

tool_programs := $(patsubst tools/%.c,build/tools/%,$(wildcard tools/*.c))

.PHONY: tools
tools: $(tool_programs)

build/tools/%: tools/%.c Makefile $(libraries) | build/tools
	@echo "  CC      $@"
	@$(CC) $(cflags) $(LDFLAGS) -o $@ $< -Lbuild/lib -laclmem \
		'-Wl,-rpath,$$ORIGIN/../lib'

-include $(wildcard build/lib/*.d build/tools/*.d)

# --- tests ------------------------------------------------------------------------

kselftest := $(CURDIR)/build/linux-source/tools/testing/selftests

.PHONY: selftests
selftests: lib
	@test -e $(kselftest)/lib.mk || { echo "no kselftest framework in build/linux-source: run sh tools/setup" >&2; exit 1; }
	@mkdir -p build/selftests
	@echo "  TESTS   build/selftests"
	@$(MAKE) -s -C selftests KSFT_DIR=$(kselftest) OUTPUT=$(CURDIR)/build/selftests

.PHONY: test
test: lib tools selftests vm-modules
	@sh tools/vm-test $(or $(KERNEL),$(vm_kernels))

.PHONY: demo
ifneq ($(filter demo,$(MAKECMDGOALS)),)
demo: build/kmod/$(call vm_release,6.1)/aclmem.ko
endif
demo: lib tools
	@tools/vm --kernel 6.1 --mem 4096 --param 'devices=2 device_mib=1200' -- \
		build/tools/aclmem-demo

.PHONY: lint
lint:
	@sh tools/lint

# --- installing ---------------------------------------------------------------------

headers := $(wildcard lib/include/acl/*.h)
own_headers := $(wildcard lib/include/*.h)
libs_installed := libaclmem.so.0 libaclmem.so libascendcl.so libaclmem.a
root := $(DESTDIR)

.PHONY: install install-module install-user
install: install-module install-user

# All or nothing: without a module to install, install no library either.
ifneq ($(filter install,$(MAKECMDGOALS)),)
install-user: | install-module
endif

ifneq ($(KREL),)
install-module: build/kmod/$(KREL)/aclmem.ko
	$(INSTALL) -d $(root)$(MODDIR)
	$(INSTALL) -m 644 $< $(root)$(MODDIR)/
	$(if $(root),,depmod $(KREL))
else
install-module:
	@echo "There are no headers of the running kernel ($(running)). Name another kernel by" >&2
	@echo "KREL= or KDIR=, or use \"make install-user\" for all but the module." >&2
	@false
endif

install-user: lib tools
	$(INSTALL) -d $(root)$(LIBDIR)/pkgconfig $(root)$(INCLUDEDIR)/acl $(root)$(INCLUDEDIR)/linux \
		$(root)$(BINDIR) $(root)$(UDEVDIR)
	$(INSTALL) -m 755 build/lib/libaclmem.so.0 $(root)$(LIBDIR)/
	ln -sf libaclmem.so.0 $(root)$(LIBDIR)/libaclmem.so
	ln -sf libaclmem.so.0 $(root)$(LIBDIR)/libascendcl.so
	$(INSTALL) -m 644 build/lib/libaclmem.a $(root)$(LIBDIR)/
	$(INSTALL) -m 644 $(headers) $(root)$(INCLUDEDIR)/acl/
	$(if $(own_headers),$(INSTALL) -m 644 $(own_headers) $(root)$(INCLUDEDIR)/)
	$(INSTALL) -m 644 uapi/linux/aclmem.h $(root)$(INCLUDEDIR)/linux/
	sed -e 's|@VERSION@|$(VERSION)|' -e 's|@PREFIX@|$(PREFIX)|' -e 's|@LIBDIR@|$(LIBDIR)|' \
		-e 's|@INCLUDEDIR@|$(INCLUDEDIR)|' lib/libaclmem.pc.in \
		>$(root)$(LIBDIR)/pkgconfig/libaclmem.pc
	chmod 644 $(root)$(LIBDIR)/pkgconfig/libaclmem.pc
	$(if $(tool_programs),$(INSTALL) -m 755 $(tool_programs) $(root)$(BINDIR)/)
	$(INSTALL) -m 644 tools/99-aclmem.rules $(root)$(UDEVDIR)/
	$(if $(root),,ldconfig)
	$(if $(root),,udevadm control --reload 2>/dev/null && udevadm trigger --subsystem-match=misc --sysname-match=aclmem || true)

.PHONY: uninstall
uninstall:
	rm -f $(if $(KREL),$(root)$(MODDIR)/aclmem.ko) \
		$(addprefix $(root)$(LIBDIR)/,$(libs_installed) pkgconfig/libaclmem.pc) \
		$(addprefix $(root)$(INCLUDEDIR)/acl/,$(notdir $(headers))) \
		$(addprefix $(root)$(INCLUDEDIR)/,$(notdir $(own_headers)) linux/aclmem.h) \
		$(addprefix $(root)$(BINDIR)/,$(notdir $(tool_programs))) \
		$(root)$(UDEVDIR)/99-aclmem.rules
	-rmdir 2>/dev/null --ignore-fail-on-non-empty $(wildcard $(if $(KREL),$(root)$(MODDIR)) \
		$(root)$(INCLUDEDIR)/acl $(root)$(INCLUDEDIR)/linux $(root)$(LIBDIR)/pkgconfig)
	$(if $(root)$(if $(KREL),,x),,depmod $(KREL))
	$(if $(root),,ldconfig)
	$(if $(root),,udevadm control --reload 2>/dev/null || true)

# --- the rest -------------------------------------------------------------------------

.PHONY: clean
clean:
	rm -rf build/kmod build/lib build/tools build/selftests build/lint build/vm build/test

.PHONY: distclean
distclean:
	rm -rf build

.PHONY: help
help:
	@echo "make               module, library and tools, in build/"
	@echo "make demo          build, then show the main job in a VM (about a minute)"
	@echo "make test          build, then run the tests in VMs with Linux 6.1 and 6.12;"
	@echo "                   KERNEL=6.1 runs them in that one alone"
	@echo "make lint          checkpatch, sparse, W=1, gcc and clang, on both kernels"
	@echo "make install       module, library, headers, tools, udev rule; as root, or DESTDIR="
	@echo "make install-user  the same without the module"
	@echo "make uninstall     take them away again"
	@echo "make clean         remove what was built; distclean: what tools/setup brought, too"
	@echo
	@echo "KDIR=DIRECTORY or KREL=RELEASE build and install the module for another kernel than"
	@echo "the running one; PREFIX (/usr/local), BINDIR, LIBDIR, INCLUDEDIR, MODDIR, UDEVDIR, CC,"
	@echo "CFLAGS, LDFLAGS as usual. \"sh tools/setup\" brings what is missing to build and test."
	@echo "\"tools/vm --help\": run anything in such a VM."
