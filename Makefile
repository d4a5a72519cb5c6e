# SPDX-License-Identifier: GPL-2.0
# The front door.  Each target is one script; its variables pass through the
# environment.

BUILD ?= build
override BUILD := $(abspath $(BUILD))
export BUILD ONLY PATCH LINUX FRESH SEEDS NIC TREE SERIES FORCE FULL

help:
	@echo 'The main jobs'
	@echo '  make bench               measure the base and every patch: throughput, latency stddev'
	@echo '                           ONLY=<driver>  PATCH=<name>  SEEDS=<n>  FRESH=1'
	@echo '  make test                checks, builds, KUnit, selftests, round trip; of each driver'
	@echo '                           the base and the last patch, FULL=1 every patch'
	@echo '  make check               every patch: format, checkpatch, sparse, W=1, series rules'
	@echo '  make lab NIC=<nic>       an interactive shell in the simulated lab'
	@echo
	@echo 'The queue'
	@echo '  make tree                build/linux: the base and one commit a patch, to edit and rebase'
	@echo '  make refresh             write patches/, series and the new-file view back from it'
	@echo '  make am TREE=<dir>       git am the queue onto a kernel tree; SERIES=<submission> for one'
	@echo
	@echo 'LINUX=<git tree>           takes that tree'\''s HEAD as the base; nothing is written there'
	@echo 'BUILD=<dir>                everything built or fetched (build/)'

bench test check lab tree refresh am:
	@scripts/$@

.PHONY: help bench check lab test tree refresh am
.NOTPARALLEL:
