# Keelson. `make` alone lists what there is.

ROOT := $(patsubst %/,%,$(dir $(abspath $(lastword $(MAKEFILE_LIST)))))
BIN  := $(ROOT)/bin
GO   ?= go

# One set of build flags everywhere, so that build, test and lint share the compile cache. What gRPC keeps for a page about requests
# looks methods up by names that only the running program knows, for which the linker keeps every method of every type.
export GOFLAGS := -trimpath -buildvcs=false -tags=grpcnotrace
export PATH := $(BIN):$(PATH)

# The modules of go.work are built as one, so that each dependency compiles once; ALONE are outside of it. Lint also asks each
# module's own go.mod whether it requires what it imports, which the workspace would hide.
ALONE := test/images tools/pins/runc deploy/packages deploy/monitoring
workspace = GOWORK=$$(case " $(ALONE) " in *" $(1) "*) echo off;; esac)

DATA_DIR ?= .keelson
NODES    ?= 1
DAEMONS  := apiserver scheduler workload-controllers nodeagent podgc
MODULES  := $(shell sed -n 's|^[[:space:]]*\./||p' $(ROOT)/go.work)

VERSION := $(shell git -C $(ROOT) describe --tags --always --dirty 2>/dev/null || echo unknown)
STAMP   := -X keelson.dev/kit/daemon.version=$(VERSION)
LDFLAGS := -s -w $(STAMP)

# Without -shuffle the go command answers from its cache for packages that nothing touched; make test-all shuffles.
TESTFLAGS ?=
comma := ,
# The gate gives rapid the same cases each time; make repeat and make test-all give it others. 0 is chance.
export RAPID_SEED ?= 1
# sum NAME,PACKAGES,FLAGS,FORMAT: tests through gotestsum, which says again at the end what failed. A test that failed runs once more,
# in a process of its own, where at most five did; bin/failed-once/NAME names it, and it is red where it fails again.
# bin/test-times/NAME.json says how long each took (make test-times).
sum = mkdir -p $(BIN)/failed-once $(BIN)/test-times && rm -f $(BIN)/failed-once/$(1) && \
  $(BIN)/gotestsum --hide-summary=skipped --format=$(or $(4),standard-quiet) \
  --rerun-fails=1 --rerun-fails-max-failures=5 $(if $(filter e2e-scenarios,$(1)),,--rerun-fails-run-root-test) \
  --rerun-fails-report=$(BIN)/failed-once/$(1) \
  --jsonfile=$(BIN)/test-times/$(1).json --packages="$(2)" -- $(TESTFLAGS) $(3)

.DEFAULT_GOAL := help
.PHONY: help
help: ## list the targets
	@echo "Keelson: the Kubernetes workload API as a mesh of five daemons."; echo
	@sed -n 's/^\([a-z][a-z0-9-]*\):.*## \(.*\)/  make \1|\2/p' $(MAKEFILE_LIST) | awk -F'|' '{printf "%-24s %s\n", $$1, $$2}'
	@echo; echo "DATA_DIR=$(DATA_DIR) and NODES=$(NODES) go to up and down."

include tools/tools.mk

.PHONY: up
up: build images ## build everything, start the mesh, leave the sample Deployment running
	@$(BIN)/keel up --data-dir $(DATA_DIR) --nodes $(NODES)

.PHONY: down
down: ## end what `make up` started
	@if [ -x $(BIN)/keel ]; then $(BIN)/keel down --data-dir $(DATA_DIR); elif [ -e $(DATA_DIR)/keel.json ]; then \
	  echo "bin/keel is missing: run make build first" >&2; exit 1; else echo "nothing is up"; fi

# No program calls reflect.Value.Methods. It is linked where all methods are: two fifths of a daemon, which stay in memory.
lean = for d in $(1); do if grep -qaF reflect.Value.Methods $(BIN)/keelson-$$d; then \
  echo "keelson-$$d is linked with every method of every type: something it imports now calls reflect's Method or MethodByName with" \
  "a name computed at run time; go build -ldflags=-dumpdep marks it <ReflectMethod>" >&2; exit 1; fi; done

.PHONY: build
build: tools hooks ## build the daemons, keel and the tools they need into bin/
	@echo "==> building the daemons and keel ($(VERSION))"
	@mkdir -p $(BIN)
	@for d in $(DAEMONS); do echo "    keelson-$$d"; \
	  (cd $(ROOT)/services/$$d && $(GO) build -ldflags "$(LDFLAGS)" -o $(BIN)/keelson-$$d ./cmd/keelson-$$d) || exit 1; done
	@$(call lean,$(DAEMONS))
	@echo "    keel"; cd $(ROOT)/cli && $(GO) build -ldflags "$(LDFLAGS)" -o $(BIN)/keel ./cmd/keel
	@echo "    cni/keelson-hostport"; cd $(ROOT)/cli && $(GO) build -ldflags "$(LDFLAGS)" -o $(BIN)/cni/keelson-hostport ./cmd/keelson-hostport

IMAGE_SOURCES := $(shell find $(ROOT)/test/images -type f ! -name '*_test.go')
.PHONY: images
images: $(STAMPS)/images $(STAMPS)/coredns-image daemon-images ## build the images of tests, samples, cluster DNS and the chart's daemons into bin/images, without a registry
$(STAMPS)/images: $(IMAGE_SOURCES)
	@echo "==> building the images"
	@mkdir -p $(STAMPS)
	@cd $(ROOT)/test/images && GOWORK=off $(GO) run ./cmd/mkimages --out $(BIN)/images
	@touch $@

$(STAMPS)/coredns-image: $(STAMPS)/coredns $(IMAGE_SOURCES)
	@echo "==> building the image of CoreDNS"
	@cd $(ROOT)/test/images && \
	  GOWORK=off $(GO) run ./cmd/mkimages --out $(BIN)/images --program $(BIN)/coredns --version $(coredns_version)
	@touch $@

# A mesh imports what is in bin/images: what one test needs only is beside it.
OPERATOR_SOURCES := $(shell find $(ROOT)/test/operator -name '*.go') $(ROOT)/test/go.mod
$(STAMPS)/operator-image: $(OPERATOR_SOURCES) $(IMAGE_SOURCES)
	@echo "==> building the image of the tests' operator"
	@mkdir -p $(STAMPS)
	@cd $(ROOT)/test && CGO_ENABLED=0 $(GO) build -ldflags "-s -w" -o $(BIN)/operator ./operator
	@cd $(ROOT)/test/images && GOWORK=off $(GO) run ./cmd/mkimages --out $(BIN)/test-images --program $(BIN)/operator --version 1
	@touch $@

# A build touches the programs even where it changes nothing, so their checksums say whether images are due.
CHARTED := $(addprefix keelson-,scheduler workload-controllers podgc)
.PHONY: daemon-images
daemon-images: build $(STAMPS)/images
	@cd $(BIN) && sha256sum $(CHARTED) >$(STAMPS)/daemons.new && \
	if ! cmp -s $(STAMPS)/daemons.new $(STAMPS)/daemons || ! ls $(CHARTED:%=$(BIN)/images/%.tar) >/dev/null 2>&1; then \
	  echo "==> building the daemons' images" && cd $(ROOT)/test/images && \
	  GOWORK=off $(GO) run ./cmd/mkimages --out $(BIN)/images --daemons $(BIN) --version $(VERSION) && \
	  mv $(STAMPS)/daemons.new $(STAMPS)/daemons; fi

TESTS := test-unit test-placement test-meshes
.PHONY: test
test: ## run every test, and say what each step took
	@rm -rf $(BIN)/test-times; mkdir -p $(BIN)/test-times; for step in $(TESTS); do begun=$$(date +%s); \
	  $(MAKE) --no-print-directory $$step || { cd $(ROOT)/tools && $(GO) run ./cmd/failures $(BIN)/test-times/*.json; exit 1; }; printf '%7s s  %s\n' $$(($$(date +%s) - begun)) $$step >>$(BIN)/test-times/steps; done; \
	$(MAKE) --no-print-directory test-times; echo "==> the steps"; cat $(BIN)/test-times/steps

# The go command sees no change of what a test reads outside of its module: these run each time (tools/layout keeps the list whole).
UNCACHED := cli/internal/clusterdns services/nodeagent/internal/kubeletconfig services/scheduler/internal/app services/scheduler/internal/config tools/chartvalues tools/layout tools/mutate tools/rules
# So do those of ALONE that read pages and charts; they are short, and nothing in them runs at once.
UNCACHED_ALONE := deploy/monitoring
UNIT     := $(filter-out test,$(MODULES))
# FIRST takes longest and waits most of its time: it begins first, and two others run beside it.
FIRST := keelson.dev/services/apiserver/internal/servertest
# Data races are watched for where more than one thing may happen at once: tools/racing finds where that is.
RACING := Dir,ImportPath,GoFiles,CgoFiles,TestGoFiles,XTestGoFiles
.PHONY: test-unit
test-unit: $(STAMPS)/golangci-lint $(STAMPS)/gotestsum ## run the tests of every module but test/ (no cluster needed), watching for data races
	@echo "==> testing $(UNIT)"; cd $(ROOT) && $(GO) list -json=$(RACING) $(UNIT:%=./%/...) >$(STAMPS)/unit.json && \
	  (cd tools && $(GO) build -o $(STAMPS)/racing ./cmd/racing) || exit 1; \
	split() { $(STAMPS)/racing "$$@" $(UNCACHED:%=keelson.dev/%) <$(STAMPS)/unit.json; }; races=$$(split) && serial=$$(split -not) || exit 1; \
	$(call sum,unit,$(FIRST) $$(echo $$races),-race -p 3 -timeout 40m) || fail=1; \
	$(call sum,unit-serial,$$(echo $$serial),-timeout 40m) || fail=1; \
	$(call sum,uncached,$(UNCACHED:%=./%),-race -count 1 -timeout 40m) || fail=1; \
	for m in $(ALONE); do echo "==> testing $$m"; case " $(UNCACHED_ALONE) " in *" $$m "*) how="-count 1" ;; *) how=-race ;; esac; \
	  (cd $(ROOT)/$$m && export GOWORK=off && $(call sum,$$(echo $$m | tr / -),./...,$$how -timeout 40m)) || fail=1; \
	done; exit $${fail:-0}

# A search by chance does not belong to the gate, which gives the same answer twice: test-unit tries the inputs in testdata/fuzz alone, and
# test-all searches. Targets are found by their names. What one finds, it leaves in testdata/fuzz beside it. Making inputs smaller that are
# only new would take all of the time.
FUZZTIME ?= 8s
FUZZ     ?= Fuzz
.PHONY: test-fuzz
test-fuzz: ## give each fuzz target, or those that FUZZ matches, FUZZTIME=8s for what it has not seen
	@cd $(ROOT) && for file in $$(grep -rl '^func Fuzz' --include='*_test.go' $(MODULES)); do \
	  for target in $$(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*testing\.F).*/\1/p' $$file | grep -E '$(FUZZ)'); do \
	    echo "==> fuzzing $$target"; \
	    (cd $$(dirname $$file) && $(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 1x .) || exit 1; \
	  done; \
	done

KINDTIME ?= 10m
KINDS    ?= .
.PHONY: fuzz-kinds
fuzz-kinds: ## give FuzzKinds KINDTIME=10m for each kind, or for those that KINDS matches
	@cd $(ROOT)/services/apiserver/internal/kindfuzz && for kind in $$($(GO) test -count 1 -run TestExamplesAreAccepted -v . | \
	    sed -n 's|^ *--- PASS: TestExamplesAreAccepted/\([^ ]*\) .*|\1|p' | grep -E '$(KINDS)'); do \
	  echo "==> fuzzing $$kind"; \
	  KEELSON_FUZZ_KIND=$$kind $(GO) test -run '^$$' -fuzz '^FuzzKinds$$' -fuzztime $(KINDTIME) -fuzzminimizetime 1x . || exit 1; \
	done

# Ten million take half an hour of two cores: make test-placement N=10000000 PREEMPTIONS=1000000
N           ?= 100000
PREEMPTIONS ?= 10000
EVENTS      ?= 10000
.PHONY: test-placement
test-placement: $(STAMPS)/gotestsum ## hold N random placements and PREEMPTIONS preemptions of the scheduler against its slow references, and EVENTS runs of random events against its invariants
	@echo "==> comparing $(N) placements and $(PREEMPTIONS) preemptions, and running $(EVENTS) times through random events"; cd $(ROOT)/services/scheduler && \
	  export KEELSON_PLACEMENTS=$(N) KEELSON_PREEMPTIONS=$(PREEMPTIONS) KEELSON_EVENTS=$(EVENTS) && \
	  $(call sum,placement,./internal/cycle,-tags=grpcnotrace$(comma)invariants -count 1 -timeout 24h -run 'AgreesWithReference|^TestRandom')

# What test/integration reads outside of its module. The tests read the sum of it, so that the go command sees a change.
OUTSIDE := deploy/helm docs/reference/controllers.md bin/kubectl bin/published
.PHONY: test-integration
test-integration: $(STAMPS)/kubectl $(STAMPS)/published $(STAMPS)/gotestsum ## run the scenarios with all daemons in one process and simulated nodes
	@echo "==> testing test (all but e2e)"; cd $(ROOT) && \
	  export KEELSON_OUTSIDE=$$(find $(OUTSIDE) -type f -exec sha256sum {} + | sort | sha256sum) && \
	  cd $(ROOT)/test && export KEELSON_BIN=$(BIN) && $(call sum,integration,$$($(GO) list ./... | grep -v -e /e2e -e /vm$$ | tr '\n' ' '),-timeout 60m)

# The tests with real daemons run in five parts at once, each in network and mount namespaces of its own: none meets another's links,
# routes, ports and mounts, nor those of a mesh that is up or that died on this machine. The longest begin first.
# They wait more than they work, but on a machine that takes 2 ms or more to start a process: more than two parts at once
# wait for each other there, and time out.
parts_at_once = begun=$$(date +%s%N); for i in $$(seq 20); do /bin/true; done; \
  parts=8; [ $$((($$(date +%s%N) - begun) / 20000000)) -lt 2 ] || parts=2
# Scenarios know nothing of each other: of these one that failed runs again alone (see sum).
E2E_SCENARIOS := ^TestScenarios
E2E_NETWORK   := ^Test(ServiceNetworking|ExternalCNIPlugin|NodeFailure|NoOvercommit|Down)
E2E_MACHINES  := ^Test(Join|HighlyAvailableControlPlane|RotateAuthority|DocumentedCommands|ExclusiveCPUs|MemoryPressure|NoWritesAtRest|Upgrade)
E2E_CHARTS    := ^Test(HelmChart|StandbyTakesOver|Simulate|DaemonSetOnJoiningNode)
e2e-scenarios := -run '$(E2E_SCENARIOS)'
e2e-network   := -run '$(E2E_NETWORK)'
e2e-machines  := -run '$(E2E_MACHINES)'
e2e-charts    := -run '$(E2E_CHARTS)'
e2e-rest      := -skip '$(E2E_SCENARIOS)|$(E2E_NETWORK)|$(E2E_MACHINES)|$(E2E_CHARTS)'
E2E_PARTS     := e2e-scenarios e2e-network e2e-rest e2e-machines e2e-charts
.PHONY: $(E2E_PARTS) e2e-needs test-e2e
$(E2E_PARTS):
	@cd $(ROOT)/test && export KEELSON_BIN=$(BIN) && \
	  $(call sum,$@,./e2e/...,-exec "unshare --net --mount" $($@) -timeout 60m,testname)

e2e-needs: build images browser $(STAMPS)/operator-image $(STAMPS)/helm $(STAMPS)/gotestsum

test-e2e: e2e-needs ## run the scenarios with real daemons and real containers (root)
	@echo "==> testing test/e2e"; $(parts_at_once); $(MAKE) --no-print-directory -k -j$$parts $(E2E_PARTS)

.PHONY: test-meshes
# test-integration mostly waits: begun last, it would run alone for minutes where two parts run at once.
test-meshes: e2e-needs $(STAMPS)/kubectl $(STAMPS)/published
	@echo "==> testing test/e2e"; $(parts_at_once); \
	  $(MAKE) --no-print-directory -k -j$$parts $(filter-out e2e-charts,$(E2E_PARTS)) test-integration e2e-charts

.PHONY: test-vm
test-vm: vm-tools packages ## test on emulated machines with systemd and cgroup v2: the kernel's part, keel init, keel join and the package
	@echo "==> testing test/vm"; cd $(ROOT)/test && KEELSON_BIN=$(BIN) $(GO) test -count 1 -timeout 100m -v ./vm/

.PHONY: test-vm-short
test-vm-short: vm-tools
	@echo "==> testing test/vm, the short form"; cd $(ROOT)/test && $(GO) test -short -timeout 20m -v ./vm/

# What the machine's mood decides shows in this: N rounds in other orders, beside a load.
ROUNDS  ?= 20
.PHONY: repeat
repeat: ## run the unit tests ROUNDS times beside a load, and tell which do not pass every time (PACKAGE=./kit/...)
	@cd $(ROOT)/tools && $(GO) build -o $(STAMPS)/repeat ./cmd/repeat && cd $(ROOT) && \
	  $(STAMPS)/repeat -n $(ROUNDS) $(or $(PACKAGE),$(UNIT:%=./%/...))

.PHONY: repeat-meshes
repeat-meshes: ## run the tests with whole meshes ROUNDS times beside a load, and tell which do not pass every time (root)
	@cd $(ROOT)/tools && $(GO) build -o $(STAMPS)/repeat ./cmd/repeat && cd $(ROOT) && $(STAMPS)/repeat -n $(ROUNDS) -make test-meshes 	  -events '$(BIN)/test-times/integration.json $(BIN)/test-times/e2e-*.json'

.PHONY: test-all
test-all: ## run every test whatever the caches hold, in another order, what simulated nodes suffice for on real ones, each fuzz target, the packages in a Debian, and the short form of those on machines
	@KEELSON_ALL=1 RAPID_SEED=0 $(MAKE) --no-print-directory test test-fuzz test-packages test-vm-short TESTFLAGS="-count=1 -shuffle=on"

.PHONY: test-times
test-times: ## tell what took longest of the tests that ran last
	@cd $(ROOT)/tools && $(GO) run ./cmd/testtimes $(BIN)/test-times/*.json

# Long targets, on real daemons: make soak SOAK=1h; make settled SETTLED=1h; make kills KILLS=1000 KILL_SEED=7
SOAK      ?= 10m
SETTLED   ?= 6m
KILLS     ?= 200
KILL_SEED ?= 0
.PHONY: soak
soak: build images ## make and delete a hundred Pods again and again for SOAK, and see that nothing grows (root)
	@cd $(ROOT)/test && KEELSON_BIN=$(BIN) $(GO) test -count 1 -timeout 24h -run '^TestSoak$$' -v ./e2e/ -soak=$(SOAK)

.PHONY: settled
settled: build images ## count for SETTLED what a mesh of real nodes at rest writes, and who (root)
	@cd $(ROOT)/test && KEELSON_BIN=$(BIN) $(GO) test -count 1 -timeout 24h -run '^TestNoWritesAtRest$$' -v ./e2e/ -settled=$(SETTLED)

.PHONY: kills
kills: build images ## kill nodeagent, containerd or shims at KILLS random moments of starts and stops (root)
	@cd $(ROOT)/test && KEELSON_BIN=$(BIN) $(GO) test -count 1 -timeout 24h -run '^TestRandomKills$$' -v ./e2e/ \
	  -kills=$(KILLS) -kill-seed=$(KILL_SEED)

.PHONY: bench
bench: build images ## measure, print one table, write docs/benchmarks.md
	@{ cd $(ROOT)/services/scheduler && $(GO) test -run '^$$' -bench Scale -benchtime 1x -timeout 20m ./internal/cycle && \
	  $(GO) test -run '^$$' -bench \
	    'Preempt$$|NewTerm|PlaceIdentical|PlaceSpread/hard/nodes=5000|PlaceSociable/./nodes=5000' \
	    ./internal/cycle ./internal/columns && \
	  cd $(ROOT)/services/nodeagent && $(GO) test -run '^$$' -bench Services ./internal/serviceproxy && \
	  cd $(ROOT)/test && KEELSON_BIN=$(BIN) $(GO) test -run '^$$' -bench . -benchtime 1x -timeout 60m ./bench/; } | \
	  (cd $(ROOT)/test && $(GO) run ./bench/table -out $(ROOT)/docs/benchmarks.md)

# The benchmarks of the work tree measure the daemons of both, so that the machine's moods fall on both alike.
BASE  ?= HEAD
BENCH ?= .
TURNS ?= base work work base
.PHONY: bench-pair
bench-pair: build images ## measure commit BASE and the work tree in turns, print each figure with its ratio (BENCH=regexp; TURNS="base work ..."; WRITE=1 for docs/benchmarks.md)
	@dir=$$(mktemp -d) && trap "git -C $(ROOT) worktree remove --force $$dir/tree; rm -rf $$dir" EXIT && \
	git -C $(ROOT) worktree add --quiet --detach $$dir/tree $(BASE) && \
	cp -a $(BIN) $$dir/tree/bin && find $$dir/tree/bin/.stamps -type f -exec touch {} + && \
	$(MAKE) --no-print-directory -C $$dir/tree build && ln -s $(BIN) $$dir/work && ln -s tree/bin $$dir/base && \
	cd $(ROOT)/test && $(GO) test -c -o $$dir/bench.test ./bench/ && cd bench && \
	for side in $(TURNS); do echo "==> measuring $$side" && KEELSON_BIN=$$dir/$$side \
	  $$dir/bench.test -test.run '^$$' -test.bench '$(BENCH)' -test.benchtime 1x -test.timeout 60m >>$$dir/$$side.txt || \
	  { cat $$dir/$$side.txt; exit 1; }; done && $(GO) run ./table $(if $(WRITE),-out $(ROOT)/docs/benchmarks.md) -base $(BASE) \
	  $$dir/base.txt $$dir/work.txt

# Hours for all modules; `make mutate MODULE=services/scheduler PACKAGE=internal/queue` takes a minute or two.
MODULE  ?= $(MODULES)
PACKAGE ?=
.PHONY: mutate
mutate: $(STAMPS)/gremlins ## break decisions in small ways, print how much of it tests notice (MODULE=, PACKAGE=)
	@cd $(ROOT)/tools && $(GO) build -o $(STAMPS)/mutate ./cmd/mutate && \
	  $(STAMPS)/mutate -root $(ROOT) -gremlins $(BIN)/gremlins -package "$(PACKAGE)" $(MODULE)

# The linter keeps findings by the path that a file had when it was found: each clone's folder has a cache of its own.
LINT_CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/keelson/lint$(subst /,-,$(ROOT))
.PHONY: lint
lint: $(STAMPS)/golangci-lint ## check the rules of the repository
	@echo "==> checking the layout"; (cd $(ROOT)/tools && $(GO) run ./cmd/layout $(ROOT)) || fail=1; \
	for m in $(MODULES) $(ALONE); do echo "==> linting $$m"; \
	  (cd $(ROOT)/$$m && GOWORK=off $(GO) list -deps -test ./... >/dev/null && \
	    GOLANGCI_LINT_CACHE=$(LINT_CACHE) $(call workspace,$$m) $(BIN)/golangci-lint run --allow-parallel-runners --config $(ROOT)/.golangci.yml ./...) || fail=1; done; exit $${fail:-0}

.PHONY: fmt
fmt: $(STAMPS)/golangci-lint ## format all code, long lines included
	@for m in $(MODULES) $(ALONE); do (cd $(ROOT)/$$m && $(call workspace,$$m) $(BIN)/golangci-lint fmt --config $(ROOT)/.golangci.yml ./...) || exit 1; done

.PHONY: hooks
hooks: ## let git format and check what is committed here, in seconds
	@! git -C $(ROOT) rev-parse --git-dir >/dev/null 2>&1 || git -C $(ROOT) config core.hooksPath tools/hooks

.PHONY: generate
generate: $(STAMPS)/codegen ## regenerate proto/, the OpenAPI definitions, the dashboards and the chart's page
	@echo "==> generating proto"; cd $(ROOT)/proto && PATH=$(BIN)/codegen:$$PATH buf lint && PATH=$(BIN)/codegen:$$PATH buf generate
	@for m in $(MODULES); do (cd $(ROOT)/$$m && PATH=$(BIN)/codegen:$$PATH $(GO) generate ./...) || exit 1; done
	@cd $(ROOT)/deploy/monitoring && GOWORK=off $(GO) generate ./... && cd $(ROOT)/tools && $(GO) run ./cmd/chartvalues $(ROOT)/deploy/helm/keelson

.PHONY: chart
chart: $(STAMPS)/helm ## check and package the Helm chart into bin/
	@test -e $(ROOT)/deploy/helm/keelson/Chart.yaml || { echo "deploy/helm/keelson holds no chart" >&2; exit 1; }
	@$(BIN)/helm lint $(ROOT)/deploy/helm/keelson && $(BIN)/helm package -d $(BIN) $(ROOT)/deploy/helm/keelson

# What is packed is what was built and tested, so the packages are for this machine's architecture. Their dates are the commit's.
.PHONY: packages
packages: build images ## pack what a mesh needs into bin/packages: a .deb, an .rpm and a tarball
	@echo "==> packing $(VERSION)"
	@rm -rf $(STAMPS)/reference; epoch=$${SOURCE_DATE_EPOCH:-$$(git -C $(ROOT) log -1 --format=%ct)} && \
	(cd $(ROOT)/cli && SOURCE_DATE_EPOCH=$$epoch $(GO) run ./cmd/keel-reference $(STAMPS)/reference) && \
	cd $(ROOT)/deploy/packages && GOWORK=off $(GO) run . --root $(ROOT) --bin $(BIN) --reference $(STAMPS)/reference \
	  --modules "$$($(GO) env GOMODCACHE)" --goroot "$$($(GO) env GOROOT)" --out $(BIN)/packages --version $(VERSION) --epoch $$epoch

.PHONY: test-packages
test-packages: vm-tools packages ## install, upgrade and remove the packages in a Debian that is fetched for it (root, apt)
	@echo "==> testing the packages"; cd $(ROOT)/deploy/packages && GOWORK=off KEELSON_PACKAGES=$(BIN)/packages \
	  $(GO) test -count 1 -timeout 30m -exec "unshare --mount" -run InDebian -v .

.PHONY: clean
clean: ## remove bin/ (the data directory stays: use make down)
	rm -rf $(BIN)
